"""The functions of the project that a stage calls, with what finds their code.

Worker code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.project_function import ProjectFunction


@dataclass(frozen=True)
class FunctionSet:
    """Some functions of a project.

    Args:
        functions: The functions, of different names.
        path: Folders to look for their code in before Python's own path, where they are there.
    """

    functions: tuple[ProjectFunction, ...] = ()
    path: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        functions = [function.to_dict() for function in self.functions]
        return {"functions": functions, "path": list(self.path)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FunctionSet:
        """The functions that `to_dict` described."""
        functions = tuple(ProjectFunction.from_dict(item) for item in values["functions"])
        return cls(functions, tuple(values["path"]))


NO_FUNCTIONS = FunctionSet()
