"""Declare functions that only Spark computes by their signatures.

A signature is written like `hll_union(binary, binary, [boolean]) -> binary`: an argument in
brackets may be left out, `a | b` takes either type, and `any` takes every type. A NULL without a
type and any other type are left to Spark, which then runs the whole query. Spark casts the
arguments itself, because it runs the call as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.types import STRING, DataType, parse_column_type

Args = tuple[Expression, ...]

_FORM = re.compile(r"(\w+)\((.*?)\)(?: -> (.+))?")
_GROUPS: dict[str, Callable[[DataType], bool]] = {
    "any": lambda _: True,
    "number": lambda t: t.is_numeric,
    "whole": lambda t: t.is_integral,
    "int": lambda t: t.kind in ("tinyint", "smallint", "int"),
    "share": lambda t: t.is_decimal or t.is_floating,
    "interval": lambda t: t.is_interval,
    "struct": lambda t: t.kind == "struct",
    "nested": lambda t: not t.is_atomic,
    "place": lambda t: t.kind.startswith(("geography(", "geometry(")),
}


@dataclass(frozen=True)
class Signature:
    """The types of a function.

    Args:
        name: Name of the function.
        arity: Fewest and most arguments.
        accepted: The names of the types that each argument may have.
        result: Type of the result; None where it depends on the arguments.
    """

    name: str
    arity: tuple[int, int]
    accepted: tuple[tuple[str, ...], ...]
    result: DataType | None

    def check(self, args: Args) -> Args:
        """The arguments as they are.

        Raises:
            UnsupportedSqlError: For a type that is not in the signature.
        """
        for arg, names in zip(args, self.accepted, strict=False):
            if arg.dtype.kind == "void" or not any(_is(arg.dtype, name) for name in names):
                raise UnsupportedSqlError(f"{self.name} of {arg.dtype}, which Spark judges")
        return args

    def result_type(self, args: Args) -> DataType:
        """The type of the result."""
        del args
        assert self.result is not None, self.name
        return self.result


def _is(dtype: DataType, name: str) -> bool:
    return _GROUPS[name](dtype) if name in _GROUPS else str(dtype) == name


def signature(text: str) -> Signature:
    """Read a signature."""
    match = _FORM.fullmatch(text)
    assert match is not None, text
    parts = [part.strip() for part in match[2].split(", ") if part.strip()]
    fewest = sum(not part.startswith("[") for part in parts)
    accepted = tuple(tuple(n.strip() for n in part.strip("[]").split("|")) for part in parts)
    result = parse_column_type(match[3]) if match[3] else None
    return Signature(match[1], (fewest, len(parts)), accepted, result)


def constant_text(args: Args, position: int, what: str) -> str:
    """A text that is written in the query, such as a schema.

    Raises:
        UnsupportedSqlError: For an argument that is computed.
    """
    value = getattr(args[position], "value", None)
    if args[position].dtype != STRING or not isinstance(value, str):
        raise UnsupportedSqlError(f"{what} is not a literal")
    return value


def each(names: Mapping[str, str] | Iterable[str], *texts: str) -> Iterator[str]:
    """Signatures of functions whose names end in a type.

    Args:
        names: What replaces `{type}`; a mapping also says what replaces `{total}`.
        texts: The signatures.
    """
    totals = names if isinstance(names, Mapping) else {}
    for name in names:
        for text in texts:
            yield text.replace("{type}", name).replace("{total}", totals.get(name, ""))
