"""Write window calls in DuckDB's SQL."""

from __future__ import annotations

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.engines.dialect import Scalar
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.functions.spell_collections import order_key
from stagecoach.planner.plan.expressions import Literal, WindowCall
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS


def window_text(call: WindowCall, scalar: Scalar, over: str) -> str:
    """A window call, whose window is the text `over`.

    Raises:
        InternalPlanError: DuckDB is not proven to compute it.
    """
    args = [scalar(a) for a in call.args]
    known = WINDOW_FUNCTIONS.get(call.function)
    if call.function == "counter_diff":
        return _counter_diff(args[0], duckdb_type(call.dtype), over)
    if known is not None:
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        return f"{known.duckdb}({', '.join(args)}{nulls}) {over}"
    spelling = AGGREGATES[call.function].duckdb
    if spelling is None:
        raise InternalPlanError(f"aggregate '{call.function}' has no DuckDB spelling")
    if call.function in ("min", "max") and not call.args[0].dtype.is_atomic:
        # The value at the extreme of a key with Spark's order of NULL members.
        spelling = f"arg_{call.function}"
        args = [f"{args[0]}, {order_key('{0}', call.args[0].dtype).format(args[0])}"]
    conditions = [scalar(call.where)] if call.where is not None else []
    if len(args) > 1:  # only count takes several: the rows without a NULL among them
        conditions += [f"{a} IS NOT NULL" for a in args]
        args = []
    condition = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    return f"{spelling}({', '.join(args) or '*'}){condition} {over}"


def _counter_diff(counter: str, dtype: str, over: str) -> str:
    """By how much a counter has grown since the row before that has one; NULL if it was reset."""
    before = f"lag({counter}, 1, NULL IGNORE NULLS) {over}"
    negative = f"CAST(error('COUNTER_DIFF_NEGATIVE_COUNTER_VALUE') AS {dtype})"
    return (
        f"CASE WHEN {counter} < 0 THEN {negative} "
        f"WHEN {counter} >= {before} THEN {counter} - {before} END"
    )


def range_key_text(text: str, key: DataType, offset: DataType) -> str:
    """The sort key of a RANGE by days or microseconds as a whole number of them."""
    if key.kind == "date" and offset.is_integral:
        return f"({text} - DATE '1970-01-01')"
    if offset.is_day_time:
        return f"epoch_us({text})"
    return text


def distance_text(offset: Literal, key: DataType | None) -> str | None:
    """The bound of a frame; None where it is a plain constant."""
    if offset.dtype.is_year_month:
        return f"INTERVAL '{int(offset.value or 0)}' MONTH"
    if offset.dtype.is_interval:
        return f"CAST({int(offset.value or 0)} AS BIGINT)"
    if key is not None and key.kind == "date":
        return f"CAST({offset.value} AS BIGINT)"
    return None
