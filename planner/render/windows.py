"""Write window calls as SQL, each cast to its type and with its whole frame."""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.planner.engines.dialect import Dialect, Scalar
from stagecoach.planner.plan.expressions import Expression, FrameBound, SortKey, WindowCall
from stagecoach.planner.types import DataType
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS


@dataclass(frozen=True)
class WindowText:
    """Writes window calls.

    Args:
        dialect: Of the engine.
        scalar: The text of a scalar expression.
    """

    dialect: Dialect
    scalar: Scalar

    def __call__(self, call: WindowCall) -> str:
        """The text of a call.

        Raises:
            InternalPlanError: The engine is not proven to compute it.
        """
        text = self.dialect.window_call(call, self.scalar, f"OVER ({self._window(call)})")
        return f"CAST({text} AS {self.dialect.type_name(call.dtype)})"

    def _window(self, call: WindowCall) -> str:
        parts = []
        if call.partition:
            parts.append(f"PARTITION BY {', '.join(self._partition(p) for p in call.partition)}")
        if call.order:
            distance = _distance_type(call)
            keys = ", ".join(self._key(k, distance) for k in call.order)
            parts.append(f"ORDER BY {keys}")
        if call.frame is not None and not self._implied(call):
            key = call.order[0].expr.dtype if call.order else None
            start, end = (self._bound(b, key) for b in (call.frame.start, call.frame.end))
            parts.append(f"{call.frame.unit.upper()} BETWEEN {start} AND {end}")
        return " ".join(parts)

    def _implied(self, call: WindowCall) -> bool:
        """Whether the function has its frame anyway."""
        known = WINDOW_FUNCTIONS.get(call.function)
        return known is not None and known.frame != "any"

    def _partition(self, expr: Expression) -> str:
        return self.dialect.partition_key(self.scalar(expr), expr.dtype)

    def _key(self, key: SortKey, distance: DataType | None) -> str:
        text = self.scalar(key.expr)
        if distance is not None:
            text = self.dialect.range_key(text, key.expr.dtype, distance)
        else:
            text = self.dialect.sort_key(text, key.expr.dtype)
        order = "ASC" if key.ascending else "DESC"
        return f"{text} {order} NULLS {'FIRST' if key.nulls_first else 'LAST'}"

    def _bound(self, bound: FrameBound, key: DataType | None) -> str:
        if bound.kind == "current":
            return "CURRENT ROW"
        words = bound.kind.upper().replace("_", " ")
        if bound.offset is None:
            return words
        return f"{self.dialect.distance(bound.offset, key)} {words}"


def _distance_type(call: WindowCall) -> DataType | None:
    """The type of the distances from the sort key's value that bound the frame, if any do."""
    frame = call.frame
    if frame is None or frame.unit != "range":
        return None
    offsets = (bound.offset for bound in (frame.start, frame.end))
    return next((offset.dtype for offset in offsets if offset is not None), None)
