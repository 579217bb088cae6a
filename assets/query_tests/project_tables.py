"""The tables of a project as tests see them: base tables, and what queries make, planned on demand.

A test gives the rows of a table; its columns are those of the project.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.plans.planning import planned_table
from stagecoach.assets.project.queries import Query
from stagecoach.infra.errors import StorageError
from stagecoach.planner.catalog import Catalog, TableInfo, TableStats
from stagecoach.planner.errors import CatalogError, StagecoachError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.versioned_names import split_name, versioned_name

_ROW_BYTES = 64
_SMALL = TableStats(num_rows=1_000, num_bytes=100_000)


class ProjectTables:
    """A planner's `Catalog` of a project in which nothing has run.

    Args:
        base: The base tables.
        queries: The queries of the project.
        plan: Plans one query.
    """

    def __init__(self, base: Catalog, queries: Sequence[Query], plan: PlanQuery) -> None:
        self._base = base
        self._makers = {query.table.lower(): query for query in queries}
        self._plan = plan
        self._made: dict[str, TableInfo] = {}
        self._open: set[str] = set()

    def table(self, name: str) -> TableInfo | None:
        """The table of that name, or None.

        Raises:
            CatalogError: Its columns cannot be had, with the reason.
        """
        own, version = split_name(name)
        maker = self._makers.get(own.lower())
        if maker is None:
            try:
                return self._base.table(name)
            except StorageError as error:
                raise CatalogError(str(error)) from error
        made = self._table_of(maker)
        return made if version is None else replace(made, name=versioned_name(made.name, version))

    def _table_of(self, maker: Query) -> TableInfo:
        key = maker.table.lower()
        if key in self._made:
            return self._made[key]
        if key in self._open:
            raise CatalogError(f"the query {maker.source} reads what it makes")
        self._open.add(key)
        try:
            table = planned_table(maker, self._plan(maker, self))
        except StagecoachError as error:
            raise CatalogError(f"{maker.source}, which makes it, has no plan: {error}") from error
        finally:
            self._open.discard(key)
        if table.table_columns is None:
            raise CatalogError(f"Spark runs all of {maker.source}, which makes it")
        rows = table.estimated_rows
        stats = None if rows is None else TableStats(rows, rows * _ROW_BYTES)
        self._made[key] = TableInfo(name=table.name, columns=table.table_columns, stats=stats)
        return self._made[key]

    def table_names(self) -> Sequence[str]:
        """All names, the base tables first."""
        return [*self._base.table_names(), *(query.table for query in self._makers.values())]

    def function(self, name: str) -> ProjectFunction | None:
        """The project's function of that name, or None."""
        return self._base.function(name)

    def function_names(self) -> Sequence[str]:
        """The names of all functions."""
        return self._base.function_names()


class GivenTables:
    """A planner's `Catalog` of the tables that a test gives; by default the others may not be read.

    Args:
        tables: What is given, by name in lower case.
        project: All tables of the project.
        reads_others: Whether tables of the project may be read that are not given.
    """

    def __init__(
        self, tables: Mapping[str, TableInfo], project: Catalog, *, reads_others: bool = False
    ) -> None:
        self._tables = tables
        self._project = project
        self._reads_others = reads_others

    def table(self, name: str) -> TableInfo | None:
        """The given table of that name; None for a name that means nothing.

        Raises:
            CatalogError: The table exists and is not given.
        """
        if (found := self._tables.get(name.lower())) is not None:
            return found
        own, version = split_name(name.lower())
        if (found := self._tables.get(own)) is not None and version is not None:
            return replace(found, name=versioned_name(found.name, version))
        if self._reads_others:
            return self._project.table(name)
        if own in {known.lower() for known in self._project.table_names()}:
            raise CatalogError(
                f"the query reads the table '{name}', and the test gives no rows of it; add it to "
                f"'given' ('{name}: []' for none)"
            )
        return None

    def table_names(self) -> Sequence[str]:
        """Names of the given tables."""
        return [table.name for table in self._tables.values()]

    def function(self, name: str) -> ProjectFunction | None:
        """The project's function of that name, or None."""
        return self._project.function(name)

    def function_names(self) -> Sequence[str]:
        """The names of all functions."""
        return self._project.function_names()


def as_given(info: TableInfo) -> TableInfo:
    """A table of the project whose rows a test gives.

    Its statistics stay, so that the query is planned as for the real table; one without is taken
    for small. How that table is stored does not matter to the rows that readers see.
    """
    return replace(
        info,
        stats=info.stats or _SMALL,
        native_reason=None,
        spark_columns={},
        unique_key=(),
        format="parquet",
        detail=None,
    )
