"""Compare rows such as `(a, b) = (1, 2)`: Spark matches their members by position, not by name."""

from __future__ import annotations

from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.types import STRING


def compared(name: str, left: Expression, right: Expression) -> Expression:
    """The comparison `name` of two values, rows among them.

    Raises:
        AnalysisError: The values cannot be compared.
        UnsupportedSqlError: Whether they can be is not known.
    """
    return make_call(name, *alike(left, right))


def alike(first: Expression, *others: Expression) -> tuple[Expression, ...]:
    """The values; rows that are written out take the names of the first row that is not."""
    values = (first, *others)
    model = next((value for value in values if not _is_written(value)), first)
    return tuple(_renamed(value, model) for value in values)


def _is_written(value: Expression) -> bool:
    return isinstance(value, Call) and value.function == "named_struct"


def _renamed(value: Expression, model: Expression) -> Expression:
    is_row = model.dtype.kind == "struct" and isinstance(value, Call) and _is_written(value)
    members = value.children[1::2] if is_row else ()
    fields = model.dtype.fields
    if not members or [m.dtype for m in members] != [f.dtype for f in fields]:
        return value
    pairs = ((Literal(STRING, f.name), m) for f, m in zip(fields, members, strict=True))
    return make_call("named_struct", *(part for pair in pairs for part in pair))
