"""Other spellings of operators and conditionals."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import AnalysisError
from planner.expressions import Expression
from planner.functions.registry import make_call

Args = tuple[Expression, ...]


def _nvl2(args: Args) -> Expression:
    if len(args) != 3:
        raise AnalysisError(f"function 'nvl2' takes 3 arguments, not {len(args)}")
    return make_call("case", make_call("is_not_null", args[0]), args[1], args[2])


MACROS: dict[str, Callable[[Args], Expression]] = {
    "isnull": lambda args: make_call("is_null", *args),
    "isnotnull": lambda args: make_call("is_not_null", *args),
    "nvl2": _nvl2,
}
