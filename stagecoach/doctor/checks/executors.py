"""Looks whether executors come up, and whether they have what tasks need."""

from __future__ import annotations

from collections.abc import Iterator

from stagecoach.doctor.findings import Finding, error, ok, skipped
from stagecoach.doctor.machines import look_at_executors
from stagecoach.doctor.place import Place
from stagecoach.infra.errors import ConfigError, CredentialsError, TaskFailedError


class ExecutorCheck:
    """Executors and their packages."""

    name = "executors"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield what each executor lacks, and leave what they say to later checks."""
        if place.spark is None:
            yield skipped("there is no Spark")
            return
        try:
            place.machines = look_at_executors(place.spark, place.settings, place.files)
        except CredentialsError as problem:
            yield error(str(problem), "correct the credentials of this machine")
            return
        except (ConfigError, TaskFailedError) as problem:
            yield error(str(problem), "see the log of an executor, in the UI of the cluster")
            return
        good = 0
        for machine in place.machines:
            if machine.problem is None:
                good += 1
            else:
                text, _, advice = machine.problem.partition("; ")
                yield error(text, advice)
        hosts = {machine.host for machine in place.machines}
        if good:
            noun = "executor has" if good == 1 else "executors have"
            yield ok(f"{good} {noun} what tasks need, on {', '.join(sorted(hosts))}")
