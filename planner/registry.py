"""Values by name, each imported when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Generic, TypeVar, cast

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
