"""The values that describe lineage, free of any plan logic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

Role = OneOf["filter", "join", "group", "window", "sort", "generate", "read"]
"""How a column decides which rows there are: it is part of a predicate, of a join's condition, of
the keys of a group, of a window's keys, of an order, or rows are made of it (`explode`). `read`:
nothing more is known of it."""


@dataclass(frozen=True, order=True)
class TableColumn:
    """A column of a base table."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


@dataclass(frozen=True, order=True)
class StageColumn:
    """A column of the output of another stage, by its position in that stage's schema."""

    stage_id: int
    position: int


Source = TableColumn | StageColumn
Decider = tuple[Source, Role]


@dataclass(frozen=True)
class ColumnLineage:
    """Where one column comes from.

    Args:
        name: Its name, for people; another column may have the same.
        values: The columns that its values are computed from.
        deciders: Columns that decide which rows these are taken from, for this column alone:
            keys of a window, the FILTER of an aggregate.
    """

    name: str
    values: frozenset[Source]
    deciders: frozenset[Decider]


@dataclass(frozen=True)
class Lineage:
    """Where the columns of a stage or of a result come from.

    Args:
        columns: In the order of the schema.
        rows: Columns that decide which rows there are, or their order, for all columns alike.
        unknown: Why nothing more is known than the tables that are read, or None. Then `values`
            and `rows` hold all of their columns.
    """

    columns: tuple[ColumnLineage, ...]
    rows: frozenset[Decider]
    unknown: str | None = None

    @property
    def sources(self) -> frozenset[Source]:
        """Every column that is read for its values or to decide on rows."""
        found = {source for source, _ in self.rows}
        for column in self.columns:
            found |= column.values
            found |= {source for source, _ in column.deciders}
        return frozenset(found)


@dataclass(frozen=True)
class QueryLineage:
    """The lineage of a planned query.

    Args:
        stages: Of each stage over what it reads itself: tables and other stages.
        result: Of the result over base tables alone.
    """

    stages: tuple[Lineage, ...]
    result: Lineage
