"""One query, planned in one way, beside plain Spark SQL."""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException

from benchmarks.random_queries.constants import has_raising_constant
from benchmarks.random_queries.stored_runner import StoredRunner
from stagecoach.infra.errors import QueryError, QueryFailedError
from stagecoach.planner import StageGraph, plan_query
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.errors import SqlError, StagecoachError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.types import Field
from tests.differential.edge_tables import EdgeTables
from tests.differential.engine_mix import mixed, on_spark
from tests.differential.inprocess import (
    InProcessRunner,
    collect,
    multiset,
    python_values,
    rows_of,
    spark_fields,
)
from tests.differential.query_check import SPARK_ERRORS
from tests.differential.wide_plans import WIDE, all_worth_it, read_by_all_cores, with_bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Outcome = OneOf[
    "equal",
    "raises",
    "refused",
    "whole",
    "asked",
    "late",
    "unneeded",
    "slow",
    "broken_spark",
    "wrong",
    "answers",
    "accepts",
    "broken",
]
"""How a query ended.

- equal: its rows are Spark's. raises: it raises on both sides. refused: both refuse it.
- whole: it runs whole on Spark. asked: Spark is asked, because the planner does not know it.
- late: a stage falls back to Spark.
- unneeded: what raises is not in the plan, or is a constant that no row needs.
- slow: it has too many rows. broken_spark: Spark has an internal error, or answers otherwise
  than itself when it pushes no filter into Parquet files: pushed, `x IN (0.0)` loses -0.0.
- answers: it answers where Spark raises, also if each stage is on Spark. Mostly an error in a row
  that another condition leaves out; functions that raise too rarely fail in their own tests.
- One of `BAD`. wrong: other rows or columns. accepts: where Spark refuses. broken: planning or a
  stage fails.
"""
BAD: frozenset[Outcome] = frozenset(("wrong", "accepts", "broken"))
"""Outcomes that no query may have."""

# What Spark's analyser says where it has lost a column by itself, as below `mode() WITHIN GROUP`
# with HAVING.
_ASSERTIONS = ("MISSING_ATTRIBUTES.RESOLVED_ATTRIBUTE_APPEAR_IN_OPERATION",)
_PUSHDOWN = "spark.sql.parquet.filterPushdown"
_SECONDS = 10.0
_SHOWN = 600
_DIGITS = 9
_ZEROS = 1e-9


@dataclass(frozen=True)
class Verdict:
    """How a query ended.

    Attributes:
        outcome: See `Outcome`.
        detail: What differs, or the reason.
        stages: How many stages it has.
        native: How many of them ran on DuckDB.
    """

    outcome: Outcome
    detail: str = ""
    stages: int = 0
    native: int = 0


@dataclass(frozen=True)
class Way:
    """How a query is planned and run.

    Attributes:
        options: Options of the planner.
        mix: Seed of the stages that are moved to Spark; None leaves them where they were planned.
        is_wide: Whether a query is one task of several cores where it can be, with all that such a
            task may gain.
        stored: Seed of the settings of a run whose shuffles are in storage; None runs task by task
            in this process.
    """

    options: PlannerOptions
    mix: int | None = None
    is_wide: bool = False
    stored: int | None = None

    @classmethod
    def of(cls, seed: int) -> Way:
        """A way that a seed chooses.

        One task, one task of several cores, or any exchange between 1 to 7 partitions; engines
        mixed or not; with shuffles in storage or task by task.
        """
        rng = random.Random(f"way {seed}")
        kind = rng.random()
        if kind < 0.1:
            options = PlannerOptions(single_task_bytes=1 << 60)
        elif kind < 0.35:
            options = WIDE
        else:
            options = PlannerOptions(
                force_distribution=True,
                num_partitions=rng.randint(1, 7),
                broadcast_bytes=rng.choice([0, 0, 1 << 60]),
            )
        return cls(
            options,
            seed if rng.random() < 0.25 else None,
            is_wide=options is WIDE,
            stored=seed if rng.random() < 0.5 else None,
        )


class Trial:
    """Runs queries on Spark and as planned, over the same tables.

    Args:
        spark: Plain Spark with views of the tables.
        tables: The tables.
    """

    def __init__(self, spark: SparkSession, tables: EdgeTables) -> None:
        self._spark = spark
        self._tables = tables
        self._runner = InProcessRunner(tables, spark)
        self._stored = StoredRunner(tables, spark)

    def run(self, sql: str, way: Way) -> Verdict:
        """How a query ends."""
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            self._spark.sparkContext.cancelAllJobs()

        timer = threading.Timer(_SECONDS, stop)
        timer.start()
        try:
            verdict = self._run(sql, way)
        except StagecoachError as error:  # a stage of a run failed, though Spark answers
            verdict = Verdict("broken", str(error)[:300])
        finally:
            timer.cancel()
        return Verdict("slow") if stopped.is_set() else verdict

    def _run(self, sql: str, way: Way) -> Verdict:
        try:
            frame = self._spark.sql(sql)
        except (AnalysisException, ParseException) as error:
            if error.getCondition() in _ASSERTIONS:
                return Verdict("broken_spark", _first_line(error))
            return self._refused(sql, way, _first_line(error))
        except SPARK_ERRORS as error:
            return Verdict("broken_spark", _first_line(error))
        try:
            expected: pa.Table | None = collect(frame)
        except SPARK_ERRORS as error:
            expected, problem = None, _first_line(error)
            if not problem.startswith("["):
                return Verdict("broken_spark", problem)
        except pa.ArrowInvalid as error:  # a NULL in a column that Spark says has none
            return Verdict("broken_spark", _first_line(error))
        graph = self._planned(sql, way, "asked")
        if isinstance(graph, Verdict):
            return graph
        if graph.fallback_reason is not None:
            return Verdict("whole", graph.fallback_reason)
        if way.mix is not None:
            graph = mixed(graph, way.mix)
        if expected is None:
            return self._raised(graph, way, problem)
        if graph.result != spark_fields(frame):
            detail = f"columns: Spark {_shown(spark_fields(frame))}, ours {_shown(graph.result)}"
            return _verdict("wrong", detail, graph)
        verdict = self._compared(graph, way, expected)
        if verdict.outcome == "wrong" and self._equals_unpushed(sql, graph, way):
            return replace(verdict, outcome="broken_spark")
        return verdict

    def _equals_unpushed(self, sql: str, graph: StageGraph, way: Way) -> bool:
        """Whether the rows are those of Spark when it pushes no filter into Parquet files."""
        self._spark.conf.set(_PUSHDOWN, "false")
        try:
            expected = collect(self._spark.sql(sql))
        except SPARK_ERRORS:  # it took too long
            return False
        finally:
            self._spark.conf.set(_PUSHDOWN, "true")
        return self._compared(graph, way, expected).outcome in {"equal", "late"}

    def _planned(self, sql: str, way: Way, refused: Outcome) -> StageGraph | Verdict:
        try:
            if not way.is_wide:
                return plan_query(sql, self._tables.catalog, way.options)
            catalog = read_by_all_cores(self._tables.catalog)
            if len(sql) % 2:  # half of them: aggregates by ranges, and other estimates
                catalog = with_bounds(catalog)
            with all_worth_it():
                return plan_query(sql, catalog, way.options)
        except SqlError as error:
            return Verdict(refused, str(error)[:200])
        except Exception as error:  # noqa: BLE001  # any other error is what is looked for
            return Verdict("broken", f"{type(error).__name__}: {error}"[:300])

    def _refused(self, sql: str, way: Way, problem: str) -> Verdict:
        graph = self._planned(sql, way, "refused")
        if isinstance(graph, Verdict):
            return graph
        if graph.fallback_reason is not None:
            return Verdict("refused", problem)
        return _verdict("accepts", problem, graph)

    def _raised(self, graph: StageGraph, way: Way, problem: str) -> Verdict:
        for engines in (graph, on_spark(graph)):
            try:
                self._result(engines, way)
            except (StagecoachError, *SPARK_ERRORS):
                if engines is graph:
                    return _verdict("raises", problem, graph)
                may_differ = has_raising_constant(self._spark, graph)
                return _verdict("unneeded" if may_differ else "answers", problem, graph)
        return _verdict("unneeded", problem, graph)

    def _compared(self, graph: StageGraph, way: Way, expected: pa.Table) -> Verdict:
        late = ""
        try:
            found, late = self._result(graph, way)
        except QueryError as error:
            late = str(error)[:200]
            graph = on_spark(graph)
            try:
                found, _ = self._result(graph, way)
            except SPARK_ERRORS as again:
                return _verdict("late", f"whole query: {str(again)[:200]}", graph)
        except (QueryFailedError, *SPARK_ERRORS) as error:
            return _verdict("late", f"whole query: {str(error)[:200]}", graph)
        what = difference(graph, expected.cast(found.schema), found)
        return _verdict("wrong" if what else "late" if late else "equal", what or late, graph)

    def _result(self, graph: StageGraph, way: Way) -> tuple[pa.Table, str]:
        """The rows, and which stages a run had Spark compute after all."""
        if way.stored is None:
            return self._runner.run(graph), ""
        return self._stored.run(graph, way.stored)


def _shown(fields: Sequence[Field]) -> str:
    return ", ".join(f"{field.name} {field.dtype}" for field in fields)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]


def difference(graph: StageGraph, expected: pa.Table, found: pa.Table) -> str:
    """How rows differ by more than the rounding of sums of floats and the sign of zeros."""
    left, right = rows_of(expected), rows_of(found)
    if left == right or (not graph.ordered and multiset(expected) == multiset(found)):
        return ""
    left, right = _rounded(expected), _rounded(found)
    if graph.ordered:
        if left == right:
            return ""
        pairs = zip(left, right, strict=False)
        first = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))
        pair = f"Spark {left[first : first + 1]}, ours {right[first : first + 1]}"
        return f"row {first} of {len(left)} and {len(right)}: {pair}"[:_SHOWN]
    missing, extra = Counter(left) - Counter(right), Counter(right) - Counter(left)
    if not missing and not extra:
        return ""
    return f"missing {list(missing.items())[:2]}, not Spark's {list(extra.items())[:2]}"[:_SHOWN]


def _rounded(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[_round(value) for value in python_values(column)] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _round(value: Any) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return 0.0 if abs(value) < _ZEROS else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list | tuple):
        return tuple(_round(member) for member in value)
    if isinstance(value, dict):
        return tuple((name, _round(member)) for name, member in value.items())
    return value


def _verdict(outcome: Outcome, detail: str, graph: StageGraph) -> Verdict:
    native = sum(stage.engine != SPARK for stage in graph.stages)
    return Verdict(outcome, detail, len(graph.stages), native)


def with_options(way: Way, **changes: Any) -> Way:
    """The way with other options of the planner."""
    return replace(way, options=replace(way.options, **changes))
