"""Functions of the project: Python functions that a catalog declares and queries call.

A declaration is all that planning knows of such a function. Its code is never imported here: it
runs where rows are, in Spark's Python workers. The code takes part through `code`, which stands for
the version of the source, so another version makes another plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.types import DataType, parse_column_type

KINDS = ("scalar", "pandas", "arrow")
"""What a function is called with: values of one row, pandas Series, or Arrow arrays."""

NULL_INPUTS = ("call", "return_null")
"""What becomes of a row with a NULL argument: the function gets it, or the result is NULL."""


@dataclass(frozen=True)
class ProjectFunction:
    """A function that the catalog declares.

    Args:
        name: Its name in SQL, in lower case.
        python: `module:attribute`.
        arguments: Types of the arguments, to which a call casts.
        returns: Type of the result.
        kind: One of `KINDS`.
        deterministic: Whether equal arguments always give equal results, without side effects.
        null_input: One of `NULL_INPUTS`.
        code: Which version of the code it is: a digest of the source, or the declared version.
    """

    name: str
    python: str
    arguments: tuple[DataType, ...]
    returns: DataType
    kind: str = "scalar"
    deterministic: bool = False
    null_input: str = "call"
    code: str = ""

    @property
    def module(self) -> str:
        """The module that has it."""
        return self.python.partition(":")[0]

    @property
    def attribute(self) -> str:
        """Its name in the module."""
        return self.python.partition(":")[2]

    @property
    def signature(self) -> str:
        """How it is called, such as `f(string, int)`."""
        return f"{self.name}({', '.join(map(str, self.arguments))})"

    @cached_property
    def unique_name(self) -> str:
        """A name that no other declaration and no other version of the code has."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return f"{self.name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        return {
            "name": self.name,
            "python": self.python,
            "arguments": [str(dtype) for dtype in self.arguments],
            "returns": str(self.returns),
            "kind": self.kind,
            "deterministic": self.deterministic,
            "null_input": self.null_input,
            "code": self.code,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ProjectFunction:
        """The function that `to_dict` described."""
        arguments = tuple(parse_column_type(text) for text in values["arguments"])
        returns = parse_column_type(values["returns"])
        return cls(**{**values, "arguments": arguments, "returns": returns})
