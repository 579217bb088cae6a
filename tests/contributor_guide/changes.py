"""Changes that a page of the contributor guide lists: "In `file`, …:" and a block of its text."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CHANGE = re.compile(r"^In `(?P<path>[^`]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?\n)```$", re.M | re.S)


@dataclass(frozen=True)
class Change:
    """A block of text that a file of the repository has."""

    path: str
    text: str


def read_changes(page: str) -> list[Change]:
    """Return the changes of a page, in its order."""
    text = (ROOT / "docs" / "contributor-guide" / page).read_text(encoding="utf-8")
    found = [Change(match["path"], match["text"]) for match in _CHANGE.finditer(text)]
    for change in found:
        assert change.text in (ROOT / change.path).read_text(encoding="utf-8"), change
    return found


class PlannerCopy:
    """A copy of the planner without the changes of a page, to which they are added one by one.

    Args:
        folder: Where the copy goes.
        changes: What the page lists.
    """

    def __init__(self, folder: Path, changes: list[Change]) -> None:
        self._folder = folder
        self._missing = [c for c in changes if c.path.startswith("planner/")]
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "planner", folder / "stagecoach" / "planner", ignore=ignored)
        shutil.copy(ROOT / "stagecoach" / "__init__.py", folder / "stagecoach")
        for change in self._missing:
            self._write(change.path)

    def add(self, change: Change) -> None:
        """Make a change at its place."""
        self._missing.remove(change)
        self._write(change.path)

    def run(self, code: str) -> str:
        """Run Python code over the copy; return what it prints, or its last line of error."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": f"{self._folder}:{ROOT}"},
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return (done.stdout or done.stderr).strip().splitlines()[-1]

    def _write(self, path: str) -> None:
        """Write a file of the repository without the changes that are not made yet."""
        text = (ROOT / path).read_text(encoding="utf-8")
        for change in (c for c in self._missing if c.path == path):
            assert text.count(change.text) == 1, change
            text = text.replace(change.text, "")
        (self._folder / "stagecoach" / path).write_text(text, encoding="utf-8")
