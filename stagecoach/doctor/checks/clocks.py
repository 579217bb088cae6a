"""Compares the clocks of the driver, of executors and of the storage."""

from __future__ import annotations

from collections.abc import Iterator

from stagecoach.doctor.findings import Finding, error, ok, skipped, warning
from stagecoach.doctor.place import Place

_ADVICE = "set the clock there, for example with chrony"
_WARN_SECONDS = 5.0
# S3 refuses requests that are signed a quarter of an hour off.
_FAIL_SECONDS = 600.0


class ClockCheck:
    """Clocks: object stores refuse requests of machines that are too far off."""

    name = "clocks"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield which clocks differ."""
        skews = [(f"the clock of {m.host} is", m.skew) for m in place.machines]
        trials = [("this machine", place.trial)]
        trials += [(machine.host, machine.storage) for machine in place.machines]
        skews += [
            (f"the clock of the storage, seen from {host}, is", float(trial["clock"]))
            for host, trial in trials
            if trial.get("clock") is not None
        ]
        if not skews:
            yield skipped("neither the storage nor an executor has told its time")
            return
        wrong = [(what, skew) for what, skew in skews if abs(skew) > _WARN_SECONDS]
        for what, skew in dict.fromkeys(wrong):
            text = f"{what} {abs(skew):g} s {'ahead' if skew > 0 else 'behind'}"
            yield (error if abs(skew) > _FAIL_SECONDS else warning)(text, _ADVICE)
        if not wrong:
            yield ok(f"no clock is more than {_WARN_SECONDS:g} s off")
