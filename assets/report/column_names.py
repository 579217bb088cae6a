"""The names that columns have in Dagster, whose tables have each name once."""

from collections.abc import Sequence
from typing import Protocol


class Named(Protocol):
    """A column with its name in the result, which may be empty or repeated."""

    @property
    def name(self) -> str:
        """The name."""
        ...


def column_names(columns: Sequence[Named]) -> Sequence[str]:
    """The names that columns have in Dagster, each once."""
    names: dict[str, None] = {}
    for position, column in enumerate(columns):
        name = column.name or f"column {position}"
        while name in names:
            name = f"{name} ({position})"
        names[name] = None
    return list(names)
