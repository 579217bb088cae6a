"""What the planner knows of tables and of the project's functions, without I/O here.

It is an interface that `infra` implements.

A table has columns, statistics, perhaps a unique key, and a scan that may take over a part of the
query. Statistics choose between plans; they never decide whether a plan is right. How the table is
stored is a matter of its format, which `stagecoach.planner.formats` looks up by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import Field

StatValue = int | float | str


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of one column, over all files of the table.

    Args:
        min_value: Smallest value: numbers as int or float, dates as days since 1970, timestamps
            as microseconds since 1970, strings as text; None where unknown.
        max_value: Largest value, likewise.
        null_count: Number of NULLs; None where unknown.
        distinct_count: Estimated number of distinct values; None where unknown.
        avg_bytes: Mean bytes of a value, uncompressed, as stored; 0 where unknown.
        spread: Share of the table's rows that lie in files which may hold a value taken at random:
            for a partition column 1 over the number of its values, 1 where unknown.
        overlap: Likewise of row groups, where they are known: little if the rows are in the order
            of the column, 1 if they are in any order.
    """

    min_value: StatValue | None = None
    max_value: StatValue | None = None
    null_count: int | None = None
    distinct_count: int | None = None
    avg_bytes: float = 0.0
    spread: float = 1.0
    overlap: float = 1.0


@dataclass(frozen=True)
class TableStats:
    """Size of a table as its footers tell it.

    Args:
        num_rows: Its rows.
        num_bytes: Stored bytes.
        num_files: Its files.
        columns: What is known of the values of columns, by name.
        is_estimate: Whether a reader may see another number of rows: they were estimated from
            bytes, or some of them are deleted or replaced.
    """

    num_rows: int
    num_bytes: int
    num_files: int = 1
    columns: Mapping[str, ColumnStats] = field(default_factory=dict)
    is_estimate: bool = False


@dataclass(frozen=True)
class ScanAbilities:
    """What a scan of a table may take over from the operators above it.

    The operators stay in the plan, so a scan only ever saves work: it may give more rows than it
    is asked for, never fewer. A scan always takes over the choice of columns.

    Args:
        filters: Filters right above the scan leave out stored data.
        first_rows: A limit with an order above the scan can end it early.
    """

    filters: bool = True
    first_rows: bool = False


@dataclass(frozen=True)
class ColumnNotes:
    """What is declared of a column besides its type.

    Args:
        comment: What it means, for people.
        nullable: Whether it may hold NULL.
    """

    comment: str = ""
    nullable: bool = True


@dataclass(frozen=True)
class TableInfo:
    """A table as the planner sees it.

    Args:
        name: Name in the catalog, as spelled there.
        columns: Columns in file order.
        stats: Sizes; None where they could not be had.
        native_reason: Why only Spark may read the table's files, or None where any engine may.
        spark_columns: Columns that only Spark may read, by name in lower case, and why.
        unique_key: Columns of which the scan shows each value once, whatever is stored: a filter on
            other columns must not be evaluated below it. Empty where stored rows are shown as they
            are.
        format: Name of the table's format.
        by_cores: Whether several cores of a task can read it at the same time: files on a local
            disk, and Parquet files wherever they are.
        is_local: Whether all its files are on a local disk.
        detail: What only that format knows of the table now, for estimates and explanations: a plan
            does not depend on it.
        notes: What is declared of columns besides their types, by name; a plan does not depend on
            it.
        is_declared: Whether the columns are declared, so that they are known without data.
    """

    name: str
    columns: tuple[Field, ...]
    stats: TableStats | None = None
    native_reason: str | None = None
    unique_key: tuple[str, ...] = ()
    format: str = "parquet"
    by_cores: bool = False
    is_local: bool = False
    detail: object = None
    notes: Mapping[str, ColumnNotes] = field(default_factory=dict, hash=False)
    is_declared: bool = False
    spark_columns: Mapping[str, str] = field(default_factory=dict, hash=False)


class Catalog(Protocol):
    """Where the planner looks tables up, and the functions of the project."""

    def table(self, name: str) -> TableInfo | None:
        """The table of that name (case does not matter), or None."""
        ...

    def table_names(self) -> Sequence[str]:
        """All names, for messages."""
        ...

    def function(self, name: str) -> ProjectFunction | None:
        """The project's function of that name (case does not matter), or None."""
        ...

    def function_names(self) -> Sequence[str]:
        """The names of all functions, for messages."""
        ...


class LookedUpCatalog:
    """A catalog whose answers for some tables, errors included, were fetched in advance.

    Looking a table up may take long, and must not hold up others that plan
    (`planner.limits.deep_stack`).

    Args:
        catalog: The catalog.
        names: Names of tables, as they will be asked for.
    """

    def __init__(self, catalog: Catalog, names: Iterable[str]) -> None:
        self._catalog = catalog
        self._found: dict[str, TableInfo | None] = {}
        self._errors: dict[str, StagecoachError] = {}
        for name in names:
            try:
                self._found[name] = catalog.table(name)
            except StagecoachError as error:
                self._errors[name] = error

    def table(self, name: str) -> TableInfo | None:
        """The table of that name, or None.

        Raises:
            StagecoachError: The catalog raised it.
        """
        if name in self._errors:
            raise self._errors[name]
        return self._found[name] if name in self._found else self._catalog.table(name)

    def table_names(self) -> Sequence[str]:
        """All names."""
        return self._catalog.table_names()

    def function(self, name: str) -> ProjectFunction | None:
        """The function of that name, or None."""
        return self._catalog.function(name)

    def function_names(self) -> Sequence[str]:
        """The names of all functions."""
        return self._catalog.function_names()


class MappingCatalog:
    """A catalog held in memory: for tests, docs and compiled projects."""

    def __init__(
        self, tables: Sequence[TableInfo], functions: Sequence[ProjectFunction] = ()
    ) -> None:
        self._tables = {t.name.lower(): t for t in tables}
        self._functions = {f.name: f for f in functions}

    def table(self, name: str) -> TableInfo | None:
        """The table of that name, or None."""
        return self._tables.get(name.lower())

    def table_names(self) -> Sequence[str]:
        """All names, in the order given."""
        return [t.name for t in self._tables.values()]

    def function(self, name: str) -> ProjectFunction | None:
        """The function of that name, or None."""
        return self._functions.get(name.lower())

    def function_names(self) -> Sequence[str]:
        """The names of all functions."""
        return list(self._functions)
