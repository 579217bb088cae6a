"""Tries the storage root from the driver and from executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stagecoach.doctor.findings import Finding, error, ok, skipped, warning
from stagecoach.doctor.place import Place
from stagecoach.infra.storage.object_store import redact_url
from stagecoach.infra.storage.trial import try_store

_SLOW_SECONDS = 1.0
_TIMED = ("write", "read", "list", "put if absent")


class StorageCheck:
    """Writing, reading, listing and conditional writing, with the time that each takes."""

    name = "storage"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield how the storage works here, then on each executor."""
        settings = place.settings
        values = {"url": settings.storage_root, "options": settings.storage_options.to_dict()}
        root = redact_url(settings.storage_root)
        place.trial = try_store(values)
        yield from judge(place.trial, f"{root} from this machine", _OWN_ADVICE)
        if not place.machines:
            yield skipped("no executor could try it")
        for machine in place.machines:
            if machine.storage:
                where = f"{root} from an executor on {machine.host}"
                yield from judge(machine.storage, where, _EXECUTOR_ADVICE[settings.credentials])
        if is_local(settings.storage_root) and _is_cluster(settings.remote, settings.master):
            yield warning(
                f"{root} is a local folder, and tasks run on other machines",
                "mount that folder on all of them under the same name, or use an object store",
            )


_OWN_ADVICE = "correct the storage root, the storage options, or the credentials of this machine"
_EXECUTOR_ADVICE = {
    "executor": "give executors credentials of their own, or send the driver's: "
    "--set engine.credentials=forward",
    "forward": "let executors reach the storage; they use the driver's credentials",
}


def judge(trial: Mapping[str, Any], where: str, advice: str) -> Iterator[Finding]:
    """Yield findings about a trial.

    Args:
        trial: What `try_store` returned.
        where: The storage, and which machine tried it.
        advice: What to do if it failed.
    """
    seconds = {step["name"]: step["seconds"] for step in trial["steps"]}
    for step in trial["steps"]:
        if step["problem"] and step["name"] != "clock":
            yield error(f"{where}: {step['name']} failed: {step['problem']}", advice)
            return
    if trial["conditional"] is False:
        yield warning(
            f"{where}: conditional writes (If-None-Match) are ignored",
            "results stay right; for a run that never does a stage twice, use a server that "
            "honours them",
        )
    times = ", ".join(f"{n} {seconds[n] * 1000:.0f} ms" for n in _TIMED if n in seconds)
    slowest = max((seconds.get(name, 0.0) for name in _TIMED), default=0.0)
    if slowest > _SLOW_SECONDS:
        yield warning(f"{where} is slow: {times}", "use a storage in the region of the cluster")
    else:
        yield ok(f"{where}: {times}")


def is_local(url: str) -> bool:
    """Whether a storage root is a folder of this machine."""
    return "://" not in url or url.startswith(("file://", "local://"))


def _is_cluster(remote: str | None, master: str) -> bool:
    return bool(remote) or not master.startswith("local")
