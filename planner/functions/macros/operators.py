"""Functions that are other spellings of operators and conditionals."""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.functions.registry import make_call
from stagecoach.planner.plan.expressions import Expression

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
