"""Plans what a test is about: a query or one of its CTEs, over the tables that the test gives."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.project.front_matter.places import Location, Places
from stagecoach.assets.project.names import did_you_mean
from stagecoach.assets.project.parameters import parse_value
from stagecoach.assets.project.queries import Query
from stagecoach.assets.query_tests.model import Given, QueryTest, TestFile
from stagecoach.assets.query_tests.parse import QueryTestError
from stagecoach.assets.query_tests.project_tables import GivenTables, as_given
from stagecoach.assets.query_tests.rows import WrittenRows
from stagecoach.infra.runtime.records.parameters import clock_value, default_value
from stagecoach.planner.catalog import Catalog, TableInfo
from stagecoach.planner.errors import CatalogError, ParameterError, SqlError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.given_parameters import RUN_BOUND_PREFIX, check_given, check_known
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.syntax.cte_units import unit_text, with_clause
from stagecoach.planner.syntax.parse import parameter_places
from stagecoach.planner.text.time_zones import zone_info
from stagecoach.planner.types import Field, parse_type
from stagecoach.planner.versioned_names import split_name


@dataclass(frozen=True, kw_only=True)
class TestCase:
    """A test with what its file says of it.

    Args:
        file: All tests of the file.
        index: Number of this one.
        path: The file.
        places: Where its keys are.
        query: The query that it is about.
    """

    __test__ = False  # not one of pytest's

    file: TestFile
    index: int
    path: Path
    places: Places
    query: Query

    @property
    def test(self) -> QueryTest:
        """The test itself."""
        return self.file.tests[self.index]

    @property
    def location(self) -> Location:
        """Where it is in the file."""
        return ("tests", self.index)

    @property
    def line(self) -> int:
        """The 1-based line at which it starts."""
        return self.places.problem(self.location, "").line

    @property
    def parameters(self) -> dict[str, str]:
        """Texts of the parameters that it gives, those of the file among them."""
        return {**self.file.parameters, **self.test.parameters}

    @property
    def now(self) -> datetime.datetime | None:
        """Its clock, in the session's zone."""
        return self.test.now or self.file.now

    def given(self) -> dict[str, tuple[Given, Location]]:
        """What it gives by name in lower case, and where that is written."""
        found: dict[str, tuple[Given, Location]] = {
            name.lower(): (rows, ("given", name)) for name, rows in self.file.given.items()
        }
        for name, rows in self.test.given.items():
            found[name.lower()] = (rows, (*self.location, "given", name))
        return found

    def refuse(self, key: Location, message: str, *, at_key: bool = False) -> QueryTestError:
        """The error of one of its keys."""
        location = (*self.location, *key)
        return QueryTestError([self.places.problem(location, message, at_key=at_key)])


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What a test runs.

    Args:
        query: The query, with the text of the unit.
        graph: Its plan.
        tables: Given rows by name in lower case.
        columns: Their columns, as the planner knows them.
        values: A value for every parameter.
    """

    query: Query
    graph: StageGraph
    tables: Mapping[str, pa.Table]
    columns: Mapping[str, TableInfo]
    values: Mapping[str, Literal]

    @property
    def reads_clock(self) -> bool:
        """Whether the unit reads the clock."""
        return any(p.name.startswith(RUN_BOUND_PREFIX) for p in self.graph.parameters)


@dataclass(kw_only=True)
class UnitPlanner:
    """Plans the units of tests; tests of one query over the same tables share a plan.

    Args:
        project: All tables of the project.
        plan: Plans one query.
        time_zone: Session time zone.
    """

    project: Catalog
    plan: PlanQuery
    time_zone: str
    _plans: dict[tuple[object, ...], StageGraph] = field(default_factory=dict)

    def unit(self, case: TestCase) -> Unit:
        """What a test runs.

        Raises:
            QueryTestError: Something in the file of tests does not fit the query.
            SqlError: A mistake in the query.
        """
        query, given = case.query, case.given()
        ctes = {name.lower() for name in with_clause(query.sql).names()}
        sql = self._text(case, [name for name in given if name in ctes])
        used = parameter_places(sql)
        infos: dict[str, TableInfo] = {}
        tables: dict[str, pa.Table] = {}
        # Tables first: the columns of a CTE follow from them.
        for name, (source, location) in sorted(given.items(), key=lambda item: item[0] in ctes):
            rows = WrittenRows(
                source=source, location=location, places=case.places, folder=case.path.parent
            )
            infos[name] = self._info(case, str(location[-1]), rows, infos if name in ctes else None)
            tables[name] = rows.table(infos[name].columns, self.time_zone)
        unit = replace(query, sql=sql)
        graph = self._planned(case, unit, infos)
        return Unit(
            query=unit,
            graph=graph,
            tables=tables,
            columns=infos,
            values=self._values(case, graph, set(used)),
        )

    def planned(self, query: Query, tables: Mapping[str, TableInfo]) -> StageGraph:
        """The plan of a query over given tables, made once.

        Raises:
            SqlError: A mistake in the query.
            CatalogError: It reads another table.
        """
        key = (query.name, query.sql, tuple((n, i.name, i.columns) for n, i in tables.items()))
        if key not in self._plans:
            self._plans[key] = self.plan(query, GivenTables(tables, self.project))
        return self._plans[key]

    def reads(self, query: Query) -> dict[str, tuple[Field, ...]]:
        """The tables that a query of the project reads, and the columns that it needs of each.

        Raises:
            SqlError: A mistake in the query.
            CatalogError: The columns of a table cannot be had.
        """
        graph = self.plan(query, self.project)
        wanted: dict[str, set[str]] = {name: set() for name, _ in graph.tables}
        for stage in graph.stages:
            for leaf in stage.leaves if stage.sql is None else ():
                if isinstance(leaf, ScanExec):
                    wanted[leaf.table] |= {source.lower() for source in leaf.source}
        whole = graph.fallback_reason is not None
        return {
            name: tuple(f for f in columns if whole or f.name.lower() in wanted[name])
            or columns[:1]
            for name, columns in graph.tables
        }

    def _text(self, case: TestCase, given: list[str]) -> str:
        try:
            return unit_text(case.query.sql, case.test.cte, given)
        except SqlError as error:
            if case.test.cte is None:
                raise
            raise case.refuse(("cte",), error.message) from error

    # ---------------------------------------------------------------- tables

    def _info(
        self,
        case: TestCase,
        name: str,
        rows: WrittenRows,
        tables: Mapping[str, TableInfo] | None,
    ) -> TableInfo:
        """The table as the planner sees it, by the project or else by what the test declares.

        Args:
            case: The test.
            name: Name of the table or CTE.
            rows: Its rows.
            tables: Of a CTE, the tables that are given; None for a table.
        """
        is_cte = tables is not None
        declared = tuple(Field(n, parse_type(t)) for n, t in rows.source.columns.items())  # type: ignore[union-attr]
        reason = ""
        try:
            found = (
                self._known(case, name, rows) if tables is None else self._cte(case, name, tables)
            )
        except (CatalogError, SqlError, QueryTestError) as error:
            if isinstance(error, QueryTestError) and not is_cte:
                raise
            found, reason = None, str(error)
        if found is not None:
            self._check_declared(rows, declared, found)
            return as_given(found)
        if declared:
            return as_given(TableInfo(name=name, columns=declared))
        if (of_file := rows.parquet_fields()) is not None:
            return as_given(TableInfo(name=name, columns=of_file))
        what = "CTE" if is_cte else "table"
        message = (
            f"the columns of the {what} '{name}' are not known ({reason.splitlines()[0]}); declare "
            "them with 'columns: {name: type, …}' beside its rows, or in the catalog"
        )
        raise QueryTestError([rows.places.problem(rows.location, message, at_key=True)])

    def _known(self, case: TestCase, name: str, rows: WrittenRows) -> TableInfo:
        found = self.project.table(name)
        if found is not None:
            return found
        names = [*self.project.table_names(), *with_clause(case.query.sql).names()]
        own = split_name(name)[0].lower()
        if own in {known.lower() for known in names}:
            raise CatalogError("its columns cannot be had")
        message = f"there is no table '{name}'{did_you_mean(name, names)}"
        problem = rows.places.problem(rows.location, message, at_key=True)
        raise QueryTestError([problem])

    def _cte(self, case: TestCase, name: str, tables: Mapping[str, TableInfo]) -> TableInfo:
        """The columns of a CTE whose rows are given: those that its text has."""
        unit = replace(case.query, sql=unit_text(case.query.sql, name))
        catalog = GivenTables(dict(tables), self.project, reads_others=True)
        return TableInfo(name=name, columns=self.plan(unit, catalog).result)

    def _check_declared(
        self, rows: WrittenRows, declared: tuple[Field, ...], found: TableInfo
    ) -> None:
        known = {f.name.lower(): f for f in found.columns}
        for f in declared:
            has = known.get(f.name.lower())
            if has is not None and has.dtype == f.dtype:
                continue
            of_table = f"the table '{found.name}' has"
            names = [column.name for column in found.columns]
            message = (
                f"{of_table} no column '{f.name}'{did_you_mean(f.name, names)}"
                if has is None
                else f"{of_table} the column '{f.name}' as {has.dtype}, not as {f.dtype}"
            )
            location = (*rows.location, "columns", f.name)
            raise QueryTestError([rows.places.problem(location, message, at_key=has is None)])

    # ---------------------------------------------------------------- plan and values

    def _planned(self, case: TestCase, unit: Query, infos: Mapping[str, TableInfo]) -> StageGraph:
        try:
            return self.planned(unit, infos)
        except CatalogError as error:
            raise case.refuse(("given",), str(error), at_key=True) from error

    def _values(self, case: TestCase, graph: StageGraph, used: set[str]) -> dict[str, Literal]:
        types = {p.name: p for p in graph.parameters}
        texts = case.parameters
        try:
            check_known(texts, case.query.front_matter.parameter_types, case.query.name)
            # A unit may need only some of the parameters of its query.
            graph_values = {name: text for name, text in texts.items() if name in types}
            specs = [p for p in graph.parameters if p.name in used or p.name in graph_values]
            needed = replace(graph, parameters=tuple(specs))
            check_given(needed, graph_values, "; give it under 'parameters'")
            found = {
                name: parse_value(name, text, types[name].dtype, self.time_zone)
                for name, text in graph_values.items()
            }
        except ParameterError as error:
            raise case.refuse(("parameters",), str(error)) from error
        for spec in graph.parameters:
            if spec.name.startswith(RUN_BOUND_PREFIX):
                found[spec.name] = clock_value(spec, self._instant(case), self.time_zone)
            elif spec.name not in found and spec.default is not None:
                found[spec.name] = default_value(graph, spec, spec.default)
        return found

    def _instant(self, case: TestCase) -> datetime.datetime:
        if case.now is None:
            message = "the query reads the clock; say what it shows: 'now: 2024-01-31 12:00:00'"
            raise case.refuse((), message)
        local = case.now.replace(tzinfo=zone_info(self.time_zone))
        return local.astimezone(datetime.UTC)
