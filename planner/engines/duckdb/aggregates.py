"""Write aggregate calls in DuckDB's SQL."""

from __future__ import annotations

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.engines.aggregates import filled
from stagecoach.planner.engines.dialect import Scalar
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.functions.spell_collections import normalized
from stagecoach.planner.plan.expressions import AggregateCall
from stagecoach.planner.text.type_names import duckdb_type


def aggregate_text(node: AggregateCall, scalar: Scalar) -> str:
    """An aggregate call, cast to its type.

    Raises:
        InternalPlanError: DuckDB is not proven to compute it.
    """
    function, name = AGGREGATES[node.function], duckdb_type(node.dtype)
    template = function.template(node)
    if template is not None:
        return filled(template, node, name, scalar)
    if function.duckdb is None:
        raise InternalPlanError(f"aggregate '{node.function}' has no DuckDB spelling")
    # Both zeros, and all NaN, are one value to both engines, but not in arrays and structs.
    texts = [
        scalar(a)
        if a.dtype.is_atomic or not node.distinct
        else normalized("{0}", a.dtype).format(scalar(a))
        for a in node.args
    ]
    args, where = ", ".join(texts), []
    if len(node.args) > 1:  # only count has several: rows without a NULL among them
        where = [f"{scalar(a)} IS NOT NULL" for a in node.args]
        args = f"({args})" if node.distinct else ""
    if node.where is not None:
        where.insert(0, scalar(node.where))
    condition = f" FILTER (WHERE {' AND '.join(where)})" if where else ""
    distinct = "DISTINCT " if node.distinct else ""
    return f"CAST({function.duckdb}({distinct}{args or '*'}){condition} AS {name})"
