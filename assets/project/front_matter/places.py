"""Finds the line and column of a key in front matter, and describes what is wrong there.

A path of keys and list positions in the YAML tree becomes a place in the `.sql` file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stagecoach.planner.errors import StagecoachError

# Keys and list positions from the top of the front matter; `<tag>` names a variant, not a key.
Location = tuple[str | int, ...]
Place = tuple[int, int]
START: Place = (1, 1)
# At the end of a location: the key itself is wrong, not its value.
AT_KEY = "<key>"


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake in a query file.

    Args:
        path: The file as it was named; empty for a query given as text.
        line: 1-based line in the file.
        column: 1-based column in that line.
        message: What is wrong, and what to do.
    """

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        if self.path:
            return f"{self.path}:{self.line}:{self.column}: {self.message}"
        return f"{self.message} (line {self.line}, column {self.column})"


class FrontMatterError(StagecoachError):
    """The leading comment of a query file is front matter, but not one that can be used.

    Args:
        problems: All mistakes, in the order of the file.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(frozen=True)
class Places:
    """Where the keys and values of a front matter are; all are equal, for they say nothing of it.

    Args:
        path: The file as it was named; empty for a query given as text.
        keys: Line and column of a key, by its location.
        values: Line and column of a value, by its location; that of `()` is the whole.
    """

    path: str = field(default="", compare=False)
    keys: Mapping[Location, Place] = field(default_factory=dict, compare=False, repr=False)
    values: Mapping[Location, Place] = field(default_factory=dict, compare=False, repr=False)

    def problem(self, location: Location, message: str, *, at_key: bool = False) -> Problem:
        """A mistake in a value or, with `at_key`, in a key itself.

        Args:
            location: What is wrong; where it is not in the file, the nearest that holds it.
            message: What is wrong, and what to do.
            at_key: Whether the key is meant, not its value.
        """
        line, column = self._find(_without_tags(location), at_key)
        return Problem(self.path, line, column, message)

    def _find(self, location: Location, at_key: bool) -> Place:
        first, second = (self.keys, self.values) if at_key else (self.values, self.keys)
        if place := first.get(location) or second.get(location):
            return place
        while location:
            location = location[:-1]
            if place := first.get(location) or second.get(location):
                return place
        return START


def _without_tags(location: Location) -> Location:
    return tuple(p for p in location if not is_tag(p))


def is_tag(part: str | int) -> bool:
    """Whether a part of a location names a variant of a model and not a key."""
    return isinstance(part, str) and part.startswith("<")
