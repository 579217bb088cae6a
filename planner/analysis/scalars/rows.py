"""Compare rows such as `(a, b) = (1, 2)`: Spark matches their members by position, not by name."""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.types import STRING, DataType


def compared(name: str, left: Expression, right: Expression) -> Expression:
    """The comparison `name` of two values, rows among them.

    Raises:
        AnalysisError: The values cannot be compared.
        UnsupportedSqlError: Whether they can be is not known.
    """
    return make_call(name, *alike(left, right))


def alike(*values: Expression) -> tuple[Expression, ...]:
    """The values; the members of rows that are written out are named as in a row that is not."""
    model = next((value for value in values if not _is_written(value)), None) or _numbered(
        values[0]
    )
    return tuple(_renamed(value, model.dtype) for value in values)


def _is_written(value: Expression) -> bool:
    return isinstance(value, Call) and value.function == "named_struct"


def _numbered(row: Expression) -> Expression:
    """The row with other names, since `(a.x, b.x)` has the same one twice."""
    return _named([f"col{n}" for n in range(1, len(row.dtype.fields) + 1)], row.children[1::2])


def _renamed(value: Expression, model: DataType) -> Expression:
    members = value.children[1::2] if _is_written(value) else ()
    if not members or [m.dtype for m in members] != [f.dtype for f in model.fields]:
        return value
    return _named([f.name for f in model.fields], members)


def _named(names: Sequence[str], members: Sequence[Expression]) -> Expression:
    pairs = ((Literal(STRING, name), m) for name, m in zip(names, members, strict=True))
    return make_call("named_struct", *(part for pair in pairs for part in pair))
