"""Runs tests and says how each ended."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import Protocol

import pyarrow as pa

from stagecoach.assets.plans.checks import check_queries
from stagecoach.assets.project.front_matter import check_against
from stagecoach.assets.project.front_matter.places import Problem
from stagecoach.assets.project.queries import Query
from stagecoach.assets.query_tests.compare import Difference, difference
from stagecoach.assets.query_tests.parse import QueryTestError
from stagecoach.assets.query_tests.project_tables import as_given
from stagecoach.assets.query_tests.rows import WrittenRows
from stagecoach.assets.query_tests.unit import TestCase, Unit, UnitPlanner
from stagecoach.infra.engines.protocol import Resources
from stagecoach.infra.errors import QueryFailedError
from stagecoach.infra.runtime.in_memory.graph_run import MemoryRun, Rows, SparkNeededError
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.errors import PlacedError, SqlError, StagecoachError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.syntax.cte_units import clock_words
from stagecoach.planner.types import Field

Outcome = OneOf["passed", "failed", "error", "skipped"]
_SHOWN_FAILING = 5


class SparkSide(Protocol):
    """What runs on Spark, with --spark."""

    def stage(
        self,
        graph: StageGraph,
        stage: Stage,
        inputs: Mapping[str, Rows],
        values: Mapping[str, Literal],
    ) -> pa.Table:
        """The rows of a stage, columns `c0`, `c1`, …."""

    def query(
        self,
        graph: StageGraph,
        tables: Mapping[str, tuple[Sequence[Field], pa.Table]],
        values: Mapping[str, Literal],
    ) -> tuple[tuple[Field, ...], pa.Table]:
        """Columns and rows of the text of a query, by plain Spark SQL."""


@dataclass(frozen=True, kw_only=True)
class RowsDiffer:
    """Two sets of rows that ought to be equal.

    Args:
        fields: The columns that are compared.
        expected: Rows.
        found: Rows.
        difference: Which of them differ.
        left: What the expected rows are, for people.
        right: What the others are.
    """

    fields: tuple[Field, ...]
    expected: pa.Table
    found: pa.Table
    difference: Difference
    left: str = "expected"
    right: str = "found"


@dataclass(frozen=True, kw_only=True)
class TestResult:
    """How a test ended.

    Args:
        case: The test.
        outcome: `error`: it could not be run.
        seconds: Time that it took.
        message: Why it did not pass; one or more lines.
        place: What the message is about, if that is not the test as a whole.
        rows: The rows that differ, if that is why.
        on_spark: Why Spark is needed, where it is.
    """

    __test__ = False  # not one of pytest's

    case: TestCase
    outcome: Outcome
    seconds: float = 0.0
    message: str = ""
    place: Problem | None = None
    rows: RowsDiffer | None = None
    on_spark: str = ""

    @property
    def name(self) -> str:
        """The query's name and the test's."""
        return f"{self.case.query.name}: {self.case.test.name}"


class _Failed(Exception):
    """A test has failed."""

    def __init__(self, message: str, rows: RowsDiffer | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.rows = rows


@dataclass(kw_only=True)
class TestRunner:
    """Runs tests in this process.

    Args:
        planner: Plans them.
        resources: What an engine may use.
        code_path: Folders in which the project's functions are.
        spark: Runs them on Spark, too; None for a run without Spark.
    """

    __test__ = False  # not one of pytest's

    planner: UnitPlanner
    resources: Resources
    code_path: tuple[str, ...] = ()
    spark: SparkSide | None = None

    def run(self, case: TestCase) -> TestResult:
        """Run one test; whatever goes wrong in it is in its result."""
        started = time.perf_counter()
        result = self._result(case)
        return replace(result, seconds=time.perf_counter() - started)

    def _result(self, case: TestCase) -> TestResult:
        if self.spark is None and case.test.spark is not None:
            reason = "it is for Spark only; run with --spark"
            return TestResult(case=case, outcome="skipped", message=reason)
        try:
            self._check(case, self.planner.unit(case))
        except _Failed as failed:
            return TestResult(case=case, outcome="failed", message=failed.message, rows=failed.rows)
        except SparkNeededError as error:
            message = f"{error}; run with --spark"
            return TestResult(case=case, outcome="error", message=message, on_spark=error.reason)
        except QueryTestError as error:
            first = error.problems[0]
            return TestResult(case=case, outcome="error", message=first.message, place=first)
        except StagecoachError as error:
            return TestResult(
                case=case,
                outcome="error",
                message=error.message if isinstance(error, SqlError) else str(error),
                place=_query_place(case, error),
            )
        return TestResult(case=case, outcome="passed")

    # ---------------------------------------------------------------- one test

    def _check(self, case: TestCase, unit: Unit) -> None:
        if case.test.expect.error is not None:
            self._check_error(case, unit)
            return
        fields, found = self.rows(case, unit)
        if self.spark is not None and unit.graph.fallback_reason is None:
            self._check_against_spark(case, unit, fields, found, case.test.expect.tolerance)
        if case.test.expect.has_rows:
            self._check_rows(case, unit, fields, found)
        if case.test.expect.checks:
            self._check_conditions(case, unit, fields, found)

    def rows(self, case: TestCase, unit: Unit) -> tuple[tuple[Field, ...], pa.Table]:
        """Columns and rows of a unit, run as a production run would.

        Raises:
            SparkNeededError: It needs Spark, and there is none.
            QueryFailedError: Spark raises.
        """
        if unit.graph.fallback_reason is not None:
            if self.spark is None:
                raise SparkNeededError(unit.query.name, unit.graph.fallback_reason)
            return self._spark_rows(case, unit)
        return unit.graph.result, self._run(unit.graph, unit.tables, unit.values)

    def _run(
        self, graph: StageGraph, tables: Mapping[str, pa.Table], values: Mapping[str, Literal]
    ) -> pa.Table:
        spark = self.spark
        on_spark = None
        if spark is not None:

            def on_spark(stage: Stage, inputs: Mapping[str, Rows]) -> pa.Table:
                return spark.stage(graph, stage, inputs, values)

        run = MemoryRun(
            graph=graph,
            tables=tables,
            values=values,
            resources=self.resources,
            code_path=self.code_path,
            on_spark=on_spark,
        )
        return run.result()

    def _spark_rows(self, case: TestCase, unit: Unit) -> tuple[tuple[Field, ...], pa.Table]:
        """Columns and rows of a unit by Spark: of its text, or of its stages if a clock is set."""
        assert self.spark is not None
        graph = unit.graph
        if graph.fallback_reason is not None and clock_words(graph.sql):
            message = (
                f"Spark runs the whole query ({graph.fallback_reason}), so its clock cannot be set"
            )
            raise case.refuse(("now",), message)
        if unit.reads_clock:
            stages = tuple(replace(stage, engine=SPARK) for stage in graph.stages)
            on_spark = replace(graph, stages=stages)
            return graph.result, self._run(on_spark, unit.tables, unit.values)
        read = {name.lower() for name, _ in graph.tables}
        tables = {
            unit.columns[name].name: (unit.columns[name].columns, rows)
            for name, rows in unit.tables.items()
            if name in read
        }
        return self.spark.query(graph, tables, unit.values)

    def _check_against_spark(
        self,
        case: TestCase,
        unit: Unit,
        fields: tuple[Field, ...],
        found: pa.Table,
        tolerance: float,
    ) -> None:
        columns, rows = self._spark_rows(case, unit)
        if [f.dtype for f in columns] != [f.dtype for f in fields]:
            theirs = ", ".join(f"{f.name} {f.dtype}" for f in columns)
            ours = ", ".join(f"{f.name} {f.dtype}" for f in fields)
            raise _Failed(f"Spark gives other columns: {theirs}; Stagecoach: {ours}")
        rows = rows.cast(found.schema)
        ordered = unit.graph.ordered
        if (told := difference(rows, found, ordered=ordered, tolerance=tolerance)) is not None:
            sides = RowsDiffer(
                fields=fields,
                expected=rows,
                found=found,
                difference=told,
                left="Spark",
                right="Stagecoach",
            )
            raise _Failed("Spark and Stagecoach give different rows; report this", sides)

    def _check_rows(
        self, case: TestCase, unit: Unit, fields: tuple[Field, ...], found: pa.Table
    ) -> None:
        expect = case.test.expect
        location = (*case.location, "expect")
        written = WrittenRows(
            source=expect, location=location, places=case.places, folder=case.path.parent
        )
        zone = self.planner.time_zone
        named = {name.lower() for name in written.column_names()}
        if not named:
            chosen = tuple(range(len(fields)))  # no rows are expected: show those that there are
            expected = found.slice(0, 0)
        else:
            chosen = tuple(i for i, f in enumerate(fields) if f.name.lower() in named)
            written.check_names(fields)
            expected = written.table([fields[i] for i in chosen], zone)
        found = found.select(list(chosen))
        if not named and expect.rows:
            raise case.refuse(("expect",), "the expected rows name no column; name some")
        expected = expected.rename_columns(found.schema.names)
        told = difference(expected, found, ordered=unit.graph.ordered, tolerance=expect.tolerance)
        if told is not None:
            rows = RowsDiffer(
                fields=tuple(fields[i] for i in chosen),
                expected=expected,
                found=found,
                difference=told,
            )
            raise _Failed(_difference_text(told), rows)

    def _check_conditions(
        self, case: TestCase, unit: Unit, fields: tuple[Field, ...], found: pa.Table
    ) -> None:
        checks = case.test.expect.checks
        front_matter = unit.query.front_matter.model_copy(
            update={"checks": checks, "partitions": None}
        )
        query = replace(unit.query, front_matter=front_matter)
        if problems := check_against(front_matter, fields):
            raise case.refuse(("expect", "checks"), problems[0].message)
        table = query.table.lower()
        info = TableInfo(name=query.table, columns=fields)
        tables = {**unit.columns, table: as_given(info)}
        rows = {**unit.tables, table: found.rename_columns([f.name for f in fields])}
        looked_at = list(check_queries(query, fields))
        if len(looked_at) < len(checks):
            message = "freshness is about when a table was made; a test has no such time"
            raise case.refuse(("expect", "checks"), message)
        for check, failing in looked_at:
            graph = self._check_plan(case, failing, tables, check.check_name)
            values = {
                n: v for n, v in unit.values.items() if n in {p.name for p in graph.parameters}
            }
            failed = self._run(graph, rows, values)
            if failed.num_rows:
                lines = [f"check '{check.check_name}' fails for {failed.num_rows} row(s):"]
                names = [f.name for f in graph.result]
                for row in _tuples(failed.slice(0, _SHOWN_FAILING)):
                    pairs = zip(names, row, strict=True)
                    lines.append("  " + ", ".join(f"{name}: {value}" for name, value in pairs))
                raise _Failed("\n".join(lines))

    def _check_plan(
        self, case: TestCase, failing: Query, tables: Mapping[str, TableInfo], name: str
    ) -> StageGraph:
        try:
            return self.planner.planned(failing, tables)
        except StagecoachError as error:
            message = f"check '{name}': {error}"
            raise case.refuse(("expect", "checks"), message) from error

    def _check_error(self, case: TestCase, unit: Unit) -> None:
        wanted = case.test.expect.error or ""
        if self.spark is None:
            raise SparkNeededError(unit.query.name, "the words of an error are Spark's")
        try:
            _, rows = self._spark_rows(case, unit)
        except QueryFailedError as error:
            if wanted.lower() in str(error).lower():
                return
            first = str(error).splitlines()[0]
            raise _Failed(f"Spark refuses the rows with another error: {first}") from error
        raise _Failed(f"an error with '{wanted}' is expected, not {_count(rows.num_rows)}")


def _tuples(table: pa.Table) -> Sequence[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _difference_text(told: Difference) -> str:
    if told.reordered:
        return "the rows are right, but in another order"
    if told.expected != told.found:
        return f"{_count(told.found)} instead of {told.expected:,}"
    wrong = len({left for left, _ in told.pairs if left is not None})
    return f"{wrong:,} of {_count(told.expected)} {'differs' if wrong == 1 else 'differ'}"


def _count(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _query_place(case: TestCase, error: StagecoachError) -> Problem | None:
    """Where in the query a mistake is."""
    if not isinstance(error, SqlError) or not isinstance(error, PlacedError):
        return None
    return Problem(case.query.source, error.line or 1, error.column or 1, error.message)
