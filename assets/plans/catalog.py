"""A catalog of the base tables and of the tables that planned queries make."""

from collections.abc import Sequence
from dataclasses import replace

from stagecoach.infra.catalog.planned import PlannedTable
from stagecoach.planner.catalog import Catalog, TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.versioned_names import split_name, versioned_name

_VALUE_BYTES = 8


class ProjectCatalog:
    """Base tables and the tables of queries that are planned already; a planner's `Catalog`.

    Args:
        base: The base tables.
        names: The tables that the project makes, planned or not, for messages about unknown names.
    """

    def __init__(self, base: Catalog, names: Sequence[str] = ()) -> None:
        self._base = base
        self._names = names
        self._made: dict[str, TableInfo] = {}
        self._unknown: dict[str, str] = {}

    def add(self, table: PlannedTable) -> None:
        """From now on there is this table, too."""
        columns = table.table_columns
        if columns is None:
            self._unknown[table.name.lower()] = table.name
            return
        rows = table.estimated_rows
        num_bytes = (rows or 0) * len(columns) * _VALUE_BYTES
        stats = None if rows is None else TableStats(rows, num_bytes, is_estimate=True)
        self._made[table.name.lower()] = TableInfo(name=table.name, columns=columns, stats=stats)

    def made(self, name: str) -> TableInfo | None:
        """The table of that name that a planned query makes, or None."""
        return self._made.get(name.lower())

    def table(self, name: str) -> TableInfo | None:
        """The table of that name, or None.

        Raises:
            CatalogError: Its columns are not known before its query has run.
        """
        if (made := self._unknown.get(split_name(name)[0].lower())) is not None:
            raise CatalogError(
                f"the columns of table '{made}' are not known before it is made, because Spark "
                "runs the whole query that makes it; write that query so that it can be planned"
            )
        own, version = split_name(name)
        found = self._made.get(own.lower())
        if found is not None and version is not None:
            # The columns are those of the query as it is now; a run compares them.
            return replace(found, name=versioned_name(found.name, version))
        return found or self._base.table(name)

    def table_names(self) -> Sequence[str]:
        """All names, the base tables first."""
        made = [*self._names, *(table.name for table in self._made.values())]
        return list(dict.fromkeys([*self._base.table_names(), *made]))

    def function(self, name: str) -> ProjectFunction | None:
        """The function of that name, or None."""
        return self._base.function(name)

    def function_names(self) -> Sequence[str]:
        """The names of all functions."""
        return self._base.function_names()
