"""Write window calls as SQL, each cast to its type and with its whole frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import Expression, FrameBound, Literal, SortKey, WindowCall
from stagecoach.planner.plan.stages import Engine
from stagecoach.planner.text.type_names import type_name
from stagecoach.planner.types import DataType
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS


@dataclass(frozen=True)
class WindowText:
    """Writes window calls for one engine.

    Args:
        engine: Whose SQL to write.
        scalar: The text of a scalar expression.
        literal: The text of a constant.
    """

    engine: Engine
    scalar: Callable[[Expression], str]
    literal: Callable[[Literal, Engine], str]

    def __call__(self, call: WindowCall) -> str:
        """The text of a call.

        Raises:
            InternalPlanError: If DuckDB has no proven spelling for it.
        """
        name = type_name(call.dtype, self.engine)
        head = self._duckdb(call) if self.engine == "duckdb" else self._spark(call)
        return f"CAST({head} OVER ({self._window(call)}) AS {name})"

    def _spark(self, call: WindowCall) -> str:
        args = ", ".join(self.scalar(a) for a in call.args)
        known = WINDOW_FUNCTIONS.get(call.function)
        if known is None:
            args = args or "*"
        distinct = "DISTINCT " if call.distinct else ""
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        return f"{call.function}({distinct}{args}){self._filter(call)}{nulls}"

    def _duckdb(self, call: WindowCall) -> str:
        args = [self.scalar(a) for a in call.args]
        known = WINDOW_FUNCTIONS.get(call.function)
        if known is not None:
            nulls = " IGNORE NULLS" if call.ignore_nulls else ""
            return f"{known.duckdb}({', '.join(args)}{nulls})"
        spelling = AGGREGATES[call.function].duckdb
        if spelling is None:
            raise InternalPlanError(f"aggregate '{call.function}' has no DuckDB spelling")
        if len(args) < 2:
            return f"{spelling}({', '.join(args) or '*'}){self._filter(call)}"
        # Only count takes several: the rows without a NULL among them.
        present = [f"{a} IS NOT NULL" for a in args]
        return f"{spelling}(*){self._filter(call, present)}"

    def _filter(self, call: WindowCall, more: list[str] | None = None) -> str:
        parts = [self.scalar(call.where)] if call.where is not None else []
        parts += more or []
        return f" FILTER (WHERE {' AND '.join(parts)})" if parts else ""

    def _window(self, call: WindowCall) -> str:
        parts = []
        if call.partition:
            parts.append(f"PARTITION BY {', '.join(self._partition(p) for p in call.partition)}")
        if call.order:
            by_distance = _has_distance(call)
            keys = ", ".join(self._key(k, call if by_distance else None) for k in call.order)
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
        text = self.scalar(expr)
        if expr.dtype.is_floating and self.engine == "duckdb":
            return f"({text} + CAST(0 AS {type_name(expr.dtype, 'duckdb')}))"
        return text

    def _key(self, key: SortKey, distance: WindowCall | None) -> str:
        text = self.scalar(key.expr)
        if distance is not None and self.engine == "duckdb":
            text = _as_number(text, key.expr.dtype, distance)
        order = "ASC" if key.ascending else "DESC"
        return f"{text} {order} NULLS {'FIRST' if key.nulls_first else 'LAST'}"

    def _bound(self, bound: FrameBound, key: DataType | None) -> str:
        if bound.kind == "current":
            return "CURRENT ROW"
        words = bound.kind.upper().replace("_", " ")
        if bound.offset is None:
            return words
        return f"{self._offset(bound.offset, key)} {words}"

    def _offset(self, offset: Literal, key: DataType | None) -> str:
        if offset.dtype.is_interval:
            return self._interval(offset)
        if self.engine == "spark" and offset.dtype.kind in ("int", "bigint"):
            return f"{offset.value}{'L' if offset.dtype.kind == 'bigint' else ''}"
        if self.engine == "duckdb" and key is not None and key.kind == "date":
            return f"CAST({offset.value} AS BIGINT)"
        return self.literal(offset, self.engine)

    def _interval(self, offset: Literal) -> str:
        amount = int(offset.value or 0)
        if offset.dtype.is_year_month:
            return f"INTERVAL '{amount}' MONTH"
        if self.engine == "duckdb":
            return f"CAST({amount} AS BIGINT)"
        seconds, fraction = divmod(amount, 1_000_000)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        time = f"{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}"
        return f"INTERVAL '{days} {time}' DAY TO SECOND"


def _has_distance(call: WindowCall) -> bool:
    """Whether the frame is bounded by distances from the sort key's value."""
    frame = call.frame
    if frame is None or frame.unit != "range":
        return False
    return frame.start.offset is not None or frame.end.offset is not None


def _as_number(text: str, key: DataType, call: WindowCall) -> str:
    """The sort key of a RANGE by days or microseconds as a whole number of them."""
    assert call.frame is not None
    offsets = [b.offset for b in (call.frame.start, call.frame.end) if b.offset is not None]
    if key.kind == "date" and offsets[0].dtype.is_integral:
        return f"({text} - DATE '1970-01-01')"
    if offsets[0].dtype.is_day_time:
        return f"epoch_us({text})"
    return text
