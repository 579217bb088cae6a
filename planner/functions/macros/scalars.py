"""Functions of strings and numbers that are shorthand for another expression."""

from __future__ import annotations

import math
from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions.registry import make_call
from stagecoach.planner.plan.coercion import require_castable
from stagecoach.planner.plan.expressions import Expression, Literal, cast
from stagecoach.planner.types import BINARY, DOUBLE, INT, NULL, STRING, decimal

Args = tuple[Expression, ...]


def _count(name: str, args: Args, *allowed: int) -> None:
    if len(args) not in allowed:
        raise AnalysisError(f"function '{name}' cannot take {len(args)} arguments")


def _typeof(args: Args) -> Expression:
    _count("typeof", args, 1)
    if "interval" in str(args[0].dtype):
        raise UnsupportedSqlError("typeof of an interval")
    return Literal(STRING, str(args[0].dtype))


def _swapped(name: str) -> Callable[[Args], Expression]:
    def build(args: Args) -> Expression:
        """Spark's call names the characters first, unlike `btrim`."""
        return make_call(name, *reversed(args))

    return build


def _ilike(args: Args) -> Expression:
    _count("ilike", args, 2, 3)
    return make_call("like", *(make_call("lower", a) for a in args[:2]), *args[2:])


def _constant(name: str, value: float) -> Callable[[Args], Expression]:
    def build(args: Args) -> Expression:
        _count(name, args, 0)
        return Literal(DOUBLE, value)

    return build


def _log(args: Args) -> Expression:
    return make_call("ln", *args) if len(args) == 1 else make_call("log", *args)


def _decode(args: Args) -> Expression:
    """DECODE of pairs: the first that equals, where NULL equals NULL."""
    if len(args) <= 2:
        return make_call("decode", *args)
    subject, rest = args[0], args[1:]
    default = rest[-1] if len(rest) % 2 else Literal(STRING, None)
    branches: list[Expression] = []
    for position in range(0, len(rest) - 1, 2):
        branches += [make_call("eq_null_safe", subject, rest[position]), rest[position + 1]]
    return make_call("case", *branches, default)


def _zero_if_null(args: Args) -> Expression:
    _count("zeroifnull", args, 1)
    return make_call("coalesce", args[0], Literal(INT, 0))


def _null_if_zero(args: Args) -> Expression:
    _count("nullifzero", args, 1)
    return make_call("nullif", args[0], Literal(INT, 0))


def _decimal(args: Args) -> Expression:
    _count("decimal", args, 1)
    require_castable(args[0].dtype, decimal(10, 0))
    return cast(args[0], decimal(10, 0))


def _to_char(args: Args) -> Expression:
    """TO_CHAR, which writes dates and binaries by functions of their own."""
    _count("to_char", args, 2)
    if args[0].dtype.is_datetime:
        return make_call("date_format", *args)
    if args[0].dtype != BINARY:
        return make_call("to_char", *args)
    layout = args[1].value if isinstance(args[1], Literal) else None
    match str(layout).strip().lower():
        case "hex":
            return make_call("hex", args[0])
        case "base64":
            return make_call("base64", args[0])
    raise UnsupportedSqlError("to_char of a binary by this format")


def _collation(args: Args) -> Expression:
    _count("collation", args, 1)
    if args[0].dtype not in (STRING, NULL):
        raise AnalysisError(f"collation: expected a string, found {args[0].dtype}")
    return Literal(STRING, "SYSTEM.BUILTIN.UTF8_BINARY")


def _if(args: Args) -> Expression:
    _count("if", args, 3)
    return make_call("case", *args)


MACROS: dict[str, Callable[[Args], Expression]] = {
    "typeof": _typeof,
    "ltrim": _swapped("ltrim"),
    "rtrim": _swapped("rtrim"),
    "ilike": _ilike,
    "e": _constant("e", math.e),
    "pi": _constant("pi", math.pi),
    "log": _log,
    "decode": _decode,
    "zeroifnull": _zero_if_null,
    "nullifzero": _null_if_zero,
    "decimal": _decimal,
    "collation": _collation,
    "to_char": _to_char,
    "to_varchar": _to_char,
    "if": _if,
}
