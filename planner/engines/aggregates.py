"""Fill the templates of aggregates."""

from __future__ import annotations

from collections.abc import Iterable

from stagecoach.planner.engines.dialect import Scalar
from stagecoach.planner.plan.expressions import AggregateCall, SortKey


def filled(template: str, node: AggregateCall, type_name: str, scalar: Scalar) -> str:
    """The text of an aggregate call, cast to its type.

    Args:
        template: See `AggregateFunction.template` for what it may refer to.
        node: The call.
        type_name: The engine's name of its type.
        scalar: Writes an expression.
    """
    args = [scalar(a) for a in node.args]
    where = scalar(node.where) if node.where is not None else ""
    text = template.format(
        *args,
        name=node.function,
        args=", ".join(args) or "*",
        distinct="DISTINCT " if node.distinct else "",
        where=f"({where})" if where else "TRUE",
        filter=f" FILTER (WHERE {where})" if where else "",
        order=f"ORDER BY {_order_text(node.order, scalar)}" if node.order else "",
        direction="DESC" if node.order and not node.order[0].ascending else "ASC",
        ignore_nulls="true" if node.ignore_nulls else "false",
        type=type_name,
    )
    return f"CAST({text} AS {type_name})"


def _order_text(keys: Iterable[SortKey], scalar: Scalar) -> str:
    """Sort keys as ORDER BY lists them, with the place of NULLs."""
    return ", ".join(
        f"{scalar(key.expr)} {'ASC' if key.ascending else 'DESC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in keys
    )
