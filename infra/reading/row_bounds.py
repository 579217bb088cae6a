"""Tests a predicate against the bounds of columns.

Worker code. `infra.runtime.file_predicates` makes tests of predicates; here they are tried, on the
bounds of whole files and of row groups alike.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.types import DataType

Ordered = Decimal | str
"""A value that compares in Python as it does in the engines."""

EPOCH = datetime.datetime(1970, 1, 1)
INTEGERS = ("tinyint", "smallint", "int", "bigint")
TIMES = ("timestamp", "timestamp_ntz")

_COMPARE = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


@dataclass(frozen=True)
class Bounds:
    """The values that a column may have in a file or in a row group.

    Args:
        has_null: Whether there may be a NULL.
        has_value: Whether there may be anything else.
        low: No value is below, None where unknown.
        high: No value is above, None where unknown.
    """

    has_null: bool = True
    has_value: bool = True
    low: Ordered | None = None
    high: Ordered | None = None


def column_bounds(dtype: DataType, num_rows: int, stored: StoredBounds) -> Bounds:
    """The bounds of a column in the terms of the planner's constants.

    Args:
        dtype: Type of the column.
        num_rows: Rows of the file or row group.
        stored: What its footer says.
    """
    nulls, low, high = stored
    return Bounds(
        has_null=nulls != 0,
        has_value=nulls is None or nulls < num_rows,
        low=_ordered_bound(dtype, low, -math.inf),
        high=_ordered_bound(dtype, high, math.inf),
    )


def _ordered_bound(dtype: DataType, value: StatValue | None, towards: float) -> Ordered | None:
    if isinstance(value, str):
        return value if dtype.kind == "string" else None
    if value is None or not math.isfinite(value):
        return None
    if dtype.is_decimal:  # kept as the nearest double: the next one is surely a bound
        return Decimal(math.nextafter(value, towards))
    if not isinstance(value, int):
        return None
    if dtype.kind in INTEGERS:
        return Decimal(value)
    try:
        if dtype.kind == "date":
            return day_text(EPOCH + datetime.timedelta(days=value))
        if dtype.kind in TIMES:
            return instant_text(EPOCH + datetime.timedelta(microseconds=value))
    except OverflowError:  # a year that does not sort as text
        return None
    return None


def day_text(moment: datetime.datetime) -> str:
    """A date as constants and bounds have it."""
    return moment.date().isoformat()


def instant_text(moment: datetime.datetime) -> str:
    """A time as constants and bounds have it."""
    return moment.isoformat(" ", "microseconds")


@dataclass(frozen=True)
class BoundsTest:
    """What a predicate asks of bounds, so that some row within them may pass it.

    Args:
        kind: `all` or `any` of the parts; `null` or `value`: the column may hold such; `lt`, `le`,
            `gt`, `ge`: it may hold a value that compares so with `value`; `starts`: or a text that
            starts with it.
        column: Number of the column; what it counts is the maker's matter.
        value: What is compared.
        parts: Of `all` and `any`.
    """

    kind: str
    column: int = -1
    value: Ordered = ""
    parts: tuple[BoundsTest, ...] = ()

    @cached_property
    def columns(self) -> frozenset[int]:
        """The columns whose bounds matter."""
        if self.kind in ("all", "any"):
            return frozenset[int]().union(*(part.columns for part in self.parts))
        return frozenset((self.column,))

    def may_hold(self, known: Mapping[int, Bounds]) -> bool:
        """Whether a row may pass whose columns lie within bounds; unknown columns have none."""
        if self.kind == "all":
            return all(part.may_hold(known) for part in self.parts)
        if self.kind == "any":
            return any(part.may_hold(known) for part in self.parts)
        bounds = known.get(self.column)
        if bounds is None:
            return True
        if self.kind == "null":
            return bounds.has_null
        if self.kind == "value":
            return bounds.has_value
        if self.kind == "starts":
            return _may_start(bounds, str(self.value))
        bound = bounds.low if self.kind in ("lt", "le") else bounds.high
        if bound is None or isinstance(bound, str) != isinstance(self.value, str):
            return True
        return bool(_COMPARE[self.kind](bound, self.value))

    def renumbered(self, numbers: Mapping[int, int]) -> BoundsTest:
        """The test with other numbers of columns; without them, what it asks may hold."""
        if self.kind in ("all", "any"):
            parts = [part.renumbered(numbers) for part in self.parts]
            return all_of(parts) if self.kind == "all" else any_of(parts)
        return replace(self, column=numbers[self.column]) if self.column in numbers else ALWAYS

    def to_list(self) -> list[Any]:
        """Plain data for `from_list`."""
        value = {"decimal": str(self.value)} if isinstance(self.value, Decimal) else self.value
        return [self.kind, self.column, value, [part.to_list() for part in self.parts]]

    @classmethod
    def from_list(cls, values: list[Any]) -> BoundsTest:
        """The test that `to_list` described."""
        kind, column, value, parts = values
        found = value if isinstance(value, str) else Decimal(value["decimal"])
        return cls(kind, column, found, tuple(map(cls.from_list, parts)))


def _may_start(bounds: Bounds, prefix: str) -> bool:
    below = isinstance(bounds.high, str) and bounds.high < prefix
    above = isinstance(bounds.low, str) and bounds.low[: len(prefix)] > prefix
    return not below and not above


ALWAYS = BoundsTest("all")
"""Nothing is known that keeps a row from passing."""
NEVER = BoundsTest("any")
"""No row passes."""


def all_of(tests: Iterable[BoundsTest]) -> BoundsTest:
    """The test that each of these must pass."""
    parts = tuple(dict.fromkeys(test for test in tests if test != ALWAYS))
    if NEVER in parts:
        return NEVER
    return parts[0] if len(parts) == 1 else BoundsTest("all", parts=parts)


def any_of(tests: Iterable[BoundsTest]) -> BoundsTest:
    """The test that one of these must pass."""
    parts = tuple(dict.fromkeys(test for test in tests if test != NEVER))
    if ALWAYS in parts:
        return ALWAYS
    return parts[0] if len(parts) == 1 else BoundsTest("any", parts=parts)
