"""Write aggregate calls as SQL, each cast to its result type."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import AggregateCall, Expression, SortKey
from stagecoach.planner.plan.stages import Engine
from stagecoach.planner.text.type_names import type_name

Scalar = Callable[[Expression], str]


def aggregate_text(node: AggregateCall, engine: Engine, scalar: Scalar) -> str:
    """The text of one aggregate call.

    Raises:
        InternalPlanError: If DuckDB is asked for what it is not proven to do.
    """
    if engine == "spark":
        return _spark(node, scalar)
    function = AGGREGATES[node.function]
    name = type_name(node.dtype, "duckdb")
    template = function.template(node)
    if template is not None:
        return f"CAST({_filled(template, node, engine, scalar)} AS {name})"
    if function.duckdb is None:
        raise InternalPlanError(f"aggregate '{node.function}' has no DuckDB spelling")
    args, where = ", ".join(scalar(a) for a in node.args), []
    if len(node.args) > 1:  # only count has several: rows without a NULL among them
        where = [f"{scalar(a)} IS NOT NULL" for a in node.args]
        args = f"({args})" if node.distinct else ""
    if node.where is not None:
        where.insert(0, scalar(node.where))
    condition = f" FILTER (WHERE {' AND '.join(where)})" if where else ""
    distinct = "DISTINCT " if node.distinct else ""
    return f"CAST({function.duckdb}({distinct}{args or '*'}){condition} AS {name})"


def order_text(keys: Iterable[SortKey], scalar: Scalar) -> str:
    """Sort keys as ORDER BY lists them, with the place of NULLs."""
    return ", ".join(
        f"{scalar(key.expr)} {'ASC' if key.ascending else 'DESC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in keys
    )


def _spark(node: AggregateCall, scalar: Scalar) -> str:
    spelling = AGGREGATES[node.function].spark
    template = spelling(node) if callable(spelling) else spelling
    if template is None:
        template = "{name}({distinct}{args}){filter}"
    return f"CAST({_filled(template, node, 'spark', scalar)} AS {type_name(node.dtype, 'spark')})"


def _filled(template: str, node: AggregateCall, engine: Engine, scalar: Scalar) -> str:
    args = [scalar(a) for a in node.args]
    where = scalar(node.where) if node.where is not None else ""
    return template.format(
        *args,
        name=node.function,
        args=", ".join(args) or "*",
        distinct="DISTINCT " if node.distinct else "",
        where=f"({where})" if where else "TRUE",
        filter=f" FILTER (WHERE {where})" if where else "",
        order=f"ORDER BY {order_text(node.order, scalar)}" if node.order else "",
        direction="DESC" if node.order and not node.order[0].ascending else "ASC",
        ignore_nulls="true" if node.ignore_nulls else "false",
        type=type_name(node.dtype, engine),
    )
