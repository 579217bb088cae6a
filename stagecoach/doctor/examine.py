"""Runs the checks one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stagecoach.doctor.findings import Check, Finding, error
from stagecoach.doctor.place import Place
from stagecoach.doctor.registry import CHECKS
from stagecoach.infra.storage.secrets import redact
from stagecoach.planner.errors import StagecoachError


def examine(place: Place, checks: Iterable[Check] = CHECKS) -> Iterator[tuple[str, Finding]]:
    """Yield the name of a check and what it finds, as soon as it has found it.

    Args:
        place: What is looked at.
        checks: What looks at it.
    """
    for check in checks:
        try:
            for finding in check.run(place):
                yield check.name, finding
        except StagecoachError as problem:
            yield check.name, error(redact(str(problem)), "")
