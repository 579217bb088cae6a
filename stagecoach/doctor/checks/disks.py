"""Looks for room where tasks spill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stagecoach.doctor.findings import Finding, error, ok, warning
from stagecoach.doctor.place import Place
from stagecoach.infra.worker.machine import try_disk
from stagecoach.planner.text.sizes import format_bytes

_LEAST_BYTES = 1 << 30
_ADVICE = "make room, or set engine.spill_dir to a folder on another disk of that machine"


class DiskCheck:
    """The folder for spilled data, here and on executors."""

    name = "disks"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield how much room there is."""
        folder = place.settings.spill_folder
        yield judge(try_disk(folder), f"{folder} on this machine")
        seen = {machine.host: machine.disk for machine in place.machines if machine.disk}
        for host, disk in sorted(seen.items()):
            yield judge(disk, f"{folder} on {host}")


def judge(disk: Mapping[str, Any], where: str) -> Finding:
    """Return the finding about a disk.

    Args:
        disk: What `try_disk` returned.
        where: The folder and its machine.
    """
    if disk["problem"]:
        return error(f"tasks cannot spill to {where}: {disk['problem']}", _ADVICE)
    text = f"{format_bytes(disk['free'])} of {format_bytes(disk['total'])} free for {where}"
    return warning(text, _ADVICE) if disk["free"] < _LEAST_BYTES else ok(text)
