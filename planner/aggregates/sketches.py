"""The estimated number of distinct values, by Spark's HyperLogLog++.

A partial state is the set of the codes of the values (`planner.hyperloglog`): each engine builds
and merges the same sets, and the estimate is computed from the last of them.
"""

from __future__ import annotations

from stagecoach.planner.aggregates.function import AggregateFunction, Args, State
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.functions.spell_conversions import is_hashed
from stagecoach.planner.hyperloglog.estimate import precision_of
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    call,
    conjoin,
)
from stagecoach.planner.types import BIGINT, BOOLEAN, INT, array_of

_CODES = array_of(INT)
_DEFAULT_DEVIATION = 0.05
# Spark selects a register by 4 bits at least.
_MAX_DEVIATION = 0.39


def _estimated(args: Args) -> Args:
    for deviation in args[1:]:
        share = None
        if isinstance(deviation, Literal) and (
            deviation.dtype.is_floating or deviation.dtype.is_decimal
        ):
            share = deviation.value
        if share is None or not 0 < float(share) <= _MAX_DEVIATION:
            raise AnalysisError(
                f"the deviation of approx_count_distinct must be a constant such as 0.05, up to {_MAX_DEVIATION}"
            )
    return args


def _precision(node: AggregateCall) -> int | None:
    """Bits that select a register; None where only Spark computes the estimate."""
    if not is_hashed(node.args[0].dtype):
        return None
    given = node.args[1] if len(node.args) > 1 else None
    deviation = given.value if isinstance(given, Literal) else None
    return precision_of(_DEFAULT_DEVIATION if deviation is None else float(deviation))


def _states(node: AggregateCall) -> tuple[State, ...] | None:
    precision = _precision(node)
    if precision is None:
        return None
    value = node.args[0]
    code = call("hll_code", INT, call("xxhash64", BIGINT, value), Literal(INT, precision))
    present = call("is_not_null", BOOLEAN, value)
    where = conjoin([present] if node.where is None else [node.where, present])
    return (State(AggregateCall(_CODES, "hll_codes", (code,), where=where), "hll_merge"),)


def _finish(node: AggregateCall, states: tuple[Column, ...]) -> Expression:
    return call("hll_estimate", BIGINT, states[0].ref, Literal(INT, _precision(node)))


def _code_set(node: AggregateCall) -> Expression:
    """The set of one row, which is empty for a row that does not pass."""
    code = Call(_CODES, "array", node.args)
    return (
        code
        if node.where is None
        else call("case", _CODES, node.where, code, Call(_CODES, "array", ()))
    )


def _estimate_of_spark(node: AggregateCall) -> str | None:
    """With its deviation as a literal: Spark takes no cast of one."""
    if len(node.args) == 1:
        return None
    deviations = (float(d.value) for d in node.args[1:] if isinstance(d, Literal) and d.value)
    return f"{{name}}({{distinct}}{', '.join(['{0}', *(f'{d!r}D' for d in deviations)])}){{filter}}"


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction("approx_count_distinct", (1, 2), lambda _: BIGINT, states=_states, finish=_finish, coerce=_estimated, spark=_estimate_of_spark, proof="aggregates"),
    AggregateFunction(
        "hll_codes", (1, 1), lambda _: _CODES, coerce=lambda args: args,
        template=lambda _: "coalesce(list(DISTINCT {0}){filter}, [])", spark="collect_set({0}){filter}",
        states=lambda node: (State(node, "hll_merge"),), row=_code_set, empty="[]", proof="aggregates",
    ),
    AggregateFunction(
        "hll_merge", (1, 1), lambda _: _CODES,
        template=lambda _: "coalesce(list_distinct(flatten(list({0}))), [])",
        spark="array_distinct(flatten(collect_list({0})))", empty="[]", proof="aggregates",
    ),
)  # fmt: skip
