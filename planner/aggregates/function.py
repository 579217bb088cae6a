"""The definition of an aggregate function: types, states, and spelling per engine.

An aggregate that can be computed in two steps says what its partial states are and how they are
merged, so that the exchange pass can move states instead of rows. As with scalar functions, a
DuckDB spelling needs a differential test that proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stagecoach.planner.plan.expressions import AggregateCall, Column, Expression
from stagecoach.planner.types import DataType

Args = tuple[Expression, ...]


@dataclass(frozen=True)
class State:
    """One column of a partial aggregate.

    Args:
        partial: What a task computes over its rows.
        merge: Function that combines the states of all tasks, of the same type.
    """

    partial: AggregateCall
    merge: str


@dataclass(frozen=True)
class AggregateFunction:
    """One row of the registry.

    Args:
        name: Canonical name, which Spark understands too.
        arity: Fewest and most arguments.
        result: Result type; raises `AnalysisError` for arguments of a wrong type.
        duckdb: DuckDB's name of the function, or None where it is not proven; the result is pinned
            to the result type (DuckDB sums integers in 128 bits).
        refuse: Why these arguments must not run on DuckDB, or None.
        states: The partial states of a call; None for a call that needs all rows at once.
        finish: The result from the merged states.
        coerce: Implicit casts of the arguments.
        template: A DuckDB template for calls that need more than a name, or None for those that
            have none. `{0}` … are the arguments, `{args}` all of them, `{distinct}` is `DISTINCT `
            or nothing, `{where}` the filter's condition (`TRUE` for none), `{filter}` the whole
            FILTER clause or nothing, `{order}` the ORDER BY clause or nothing, `{type}` the result.
        spark: A Spark template for calls that are not written `name(DISTINCT args)`; it also knows
            `{name}`, `{direction}` of the first sort key and `{ignore_nulls}`.
        empty: What the aggregate gives over no rows: `0`, `[]`, `unknown`, or None for NULL.
        reason: Why no call runs on DuckDB.
        row: The aggregate of a single row as an expression over it, of the result type; None where
            that is not proven. A partial aggregate that would not reduce its rows gives this.
        proof: Name of the differential test.
    """

    name: str
    arity: tuple[int, int]
    result: Callable[[Args], DataType]
    duckdb: str | None = None
    refuse: Callable[[AggregateCall], str | None] = lambda _: None
    states: Callable[[AggregateCall], tuple[State, ...] | None] = lambda _: None
    finish: Callable[[AggregateCall, tuple[Column, ...]], Expression] = lambda _, s: s[0].ref
    coerce: Callable[[Args], Args] = lambda args: args
    template: Callable[[AggregateCall], str | None] = lambda _: None
    spark: str | Callable[[AggregateCall], str | None] | None = None
    empty: str | None = None
    reason: str = ""
    row: Callable[[AggregateCall], Expression] | None = None
    proof: str = ""

    def spark_template(self, node: AggregateCall) -> str | None:
        """Spark's template for a call; None where it is written `name(DISTINCT args)`."""
        return self.spark(node) if callable(self.spark) else self.spark

    def in_one_step(self, node: AggregateCall) -> bool:
        """Whether a plan may compute a call from its rows; else it is finished from states."""
        return self.duckdb is not None or self.states(node) is None
