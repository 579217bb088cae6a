"""What checks find, and what a check is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from stagecoach.doctor.place import Place

Status = Literal["ok", "warning", "error", "skipped"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report.

    Args:
        status: `error` if runs will fail, `warning` if they may or will be slow.
        text: What was found, and where.
        advice: What to do about it; empty if there is nothing to do.
    """

    status: Status
    text: str
    advice: str = ""


def ok(text: str) -> Finding:
    """A finding that all is well."""
    return Finding(status="ok", text=text)


def warning(text: str, advice: str) -> Finding:
    """A finding that something may go wrong."""
    return Finding(status="warning", text=text, advice=advice)


def error(text: str, advice: str) -> Finding:
    """A finding that runs will fail."""
    return Finding(status="error", text=text, advice=advice)


def skipped(text: str) -> Finding:
    """A finding that there was nothing to look at, and why."""
    return Finding(status="skipped", text=text)


class Check(Protocol):
    """Looks at one thing."""

    @property
    def name(self) -> str:
        """What it looks at, in a word or two."""
        ...

    def run(self, place: Place) -> Iterable[Finding]:
        """Yield what it finds.

        Args:
            place: What is looked at.

        Raises:
            StagecoachError: Something is wrong that it did not expect; counts as an error.
        """
        ...
