"""Table formats by name; nothing else in the planner or in `infra` names one.

A format has two halves, one in `stagecoach.planner.formats` and one in `stagecoach.infra.formats`.
Each package has a registry, and only the name joins the two. An entry is the path of the half, such
as `package.module:FORMAT`, which is imported when a table of that format is first met: planning a
query over Parquet files loads no code of any other format.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Generic, TypeVar, cast

from stagecoach.planner.formats.protocol import PlannerFormat

T = TypeVar("T")


class Registry(Generic[T]):
    """Values by name, each imported when it is first asked for.

    Args:
        paths: The path of each value, `package.module:attribute`.
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = dict(paths)
        self._found: dict[str, T] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order in which they were registered."""
        return tuple(self._paths)

    def register(self, name: str, path: str) -> None:
        """Add a value, or replace the one of that name."""
        self._paths[name] = path
        self._found.pop(name, None)

    def remove(self, name: str) -> None:
        """Forget the value of that name."""
        self._paths.pop(name, None)
        self._found.pop(name, None)

    def get(self, name: str) -> T | None:
        """Return the value of that name, or None."""
        if name not in self._found and name in self._paths:
            self._found[name] = cast("T", load(self._paths[name]))
        return self._found.get(name)


def load(path: str) -> object:
    """Return what a path such as `package.module:attribute` names."""
    module, _, attribute = path.partition(":")
    found: object = getattr(importlib.import_module(module), attribute)
    return found


PLANNER_FORMATS: Registry[PlannerFormat] = Registry(
    {"deduplicated": "stagecoach.planner.formats.deduplicated.planner_format:FORMAT"}
)
"""The planner's halves; a format of which the planner need know nothing is not listed."""

_DEFAULT = PlannerFormat()


def planner_format(name: str) -> PlannerFormat:
    """Return the planner's half of a format, the default for a format that has none."""
    return PLANNER_FORMATS.get(name) or _DEFAULT
