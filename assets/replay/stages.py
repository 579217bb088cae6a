"""Replays the stages of a run, leaves first, and says where rows differ.

    what the run committed ─┐
    DuckDB, now            ─┼─ the same rows?
    Spark, now             ─┘

Each stage reads what it read in the run, so a stage that differs has the fault itself: whatever
went wrong before it, it is computed from the same rows.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from stagecoach.assets.query_tests.run import RowsDiffer
from stagecoach.assets.replay.comparison import compare_rows
from stagecoach.assets.report.column_names import column_names
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.replay.merged_rows import depends_on_tasks, merged, merging_stage
from stagecoach.infra.replay.recorded_run import RecordedRun
from stagecoach.infra.replay.stage_rows import StageRows
from stagecoach.planner.engines.registry import SPARK, planner_engine
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.physical import BloomBuildExec
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITTED = "the run"


@dataclass(frozen=True, kw_only=True)
class Side:
    """The rows of a stage by one of those who compute it.

    Args:
        name: Who, for people.
        rows: The rows; None where there are none to show.
        problem: Why there are none; empty where it is only not asked for.
        seconds: Time that it took.
    """

    name: str
    rows: pa.Table | None = None
    problem: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StageReplay:
    """What replaying a stage has shown.

    Args:
        stage: The stage.
        fields: Its columns, each with a name of its own.
        committed: What the run committed.
        native: What the stage's own engine makes of the same input now.
        spark: What Spark makes of it.
        differences: What differs, one for each pair of sides.
        notes: What to know of the comparisons.
        compared_with_run: Whether the rows of the run were compared with those of now.
    """

    stage: Stage
    fields: tuple[Field, ...]
    committed: Side
    native: Side
    spark: Side
    differences: tuple[RowsDiffer, ...] = ()
    notes: tuple[str, ...] = ()
    compared_with_run: bool = False

    @property
    def engines_differ(self) -> bool:
        """Whether Spark gives other rows than the stage's own engine."""
        return any(
            SPARK_NAME in (d.left, d.right) and COMMITTED not in (d.left, d.right)
            for d in self.differences
        )

    @property
    def has_failed(self) -> bool:
        """Whether nobody could compute the stage again, or Spark could not."""
        has_rows = self.native.rows is not None or self.spark.rows is not None
        return bool(self.spark.problem) or not (has_rows or self.stage.engine == SPARK)

    @property
    def run_differs(self) -> bool:
        """Whether the run committed other rows than it would now."""
        return any(COMMITTED in (d.left, d.right) for d in self.differences)


SPARK_NAME = planner_engine(SPARK).label


@dataclass(frozen=True, kw_only=True)
class StageReplayer:
    """Replays stages.

    Args:
        rows: Computes their rows.
        native: Whether the stage's own engine is asked.
        session: Gives the Spark session; None not to ask Spark.
    """

    rows: StageRows
    native: bool = True
    session: "Callable[[], SparkSession] | None" = None

    @property
    def _run(self) -> RecordedRun:
        return self.rows.run

    def replay(self, stages: Sequence[Stage]) -> Iterator[StageReplay]:
        """Replay these stages, one after the other."""
        for stage in stages:
            yield self.stage(stage)

    def stage(self, stage: Stage) -> StageReplay:
        """Replay one stage; what cannot be computed is in the result."""
        committed = self._side(COMMITTED, lambda: self.rows.committed(stage))
        if committed.rows is None and not committed.problem:
            committed = replace(committed, problem=self._without_output(stage))
        label = planner_engine(stage.engine).label
        native = Side(name=label)
        if stage.engine == SPARK:
            native = replace(native, problem=f"the stage runs on Spark: {stage.engine_reason}")
        elif self.native:
            native = self._side(label, lambda: self.rows.native(stage))
        spark = Side(name=SPARK_NAME)
        if self.session is not None:
            session = self.session
            spark = self._side(SPARK_NAME, lambda: self.rows.on_spark(stage, session))
        return self._compared(stage, committed, native, spark)

    def _without_output(self, stage: Stage) -> str:
        pointer = self._run.pointers.get(stage.stage_id)
        if pointer is not None and pointer.deferred is not None:
            return f"it left its work to Spark: {pointer.deferred}"
        return "it did not finish"

    def _side(self, name: str, compute: Callable[[], pa.Table | None]) -> Side:
        started = time.perf_counter()
        try:
            rows, problem = compute(), ""
        except ConfigError:  # every other stage would fail with it, too
            raise
        except StagecoachError as error:
            rows, problem = None, str(error)
        return Side(name=name, rows=rows, problem=problem, seconds=time.perf_counter() - started)

    # ---------------------------------------------------------------- comparing

    def _compared(self, stage: Stage, committed: Side, native: Side, spark: Side) -> StageReplay:
        notes: list[str] = []
        fields = stage_fields(self._run, stage)
        replay = StageReplay(
            stage=stage, fields=fields, committed=committed, native=native, spark=spark
        )
        if not stage.deterministic:
            notes.append("it is not deterministic, so its rows are not compared")
            return replace(replay, notes=tuple(notes))
        differences: list[RowsDiffer] = []
        again = native if native.rows is not None else spark
        has_compared = False
        if committed.rows is not None and again.rows is not None:
            if self._is_whole_query(stage):
                notes.append(
                    f"the run had Spark run the whole query instead: {self._run.whole_query}"
                )
            before, now, shown, note = self._comparable(stage, fields, committed.rows, again.rows)
            notes += [note] if note else []
            if before is not None:
                has_compared = True
                told = compare_rows(self._run, shown, before, now, left=COMMITTED, right=again.name)
                differences += [] if told is None else [told]
        if native.rows is not None and spark.rows is not None:
            told = compare_rows(
                self._run, fields, spark.rows, native.rows, left=spark.name, right=native.name
            )
            differences += [] if told is None else [told]
        return replace(
            replay,
            differences=tuple(differences),
            notes=tuple(notes),
            compared_with_run=has_compared,
        )

    def _is_whole_query(self, stage: Stage) -> bool:
        run = self._run
        return stage is run.graph.head and stage.sql is None and run.whole_query is not None

    def _comparable(
        self, stage: Stage, fields: tuple[Field, ...], before: pa.Table, now: pa.Table
    ) -> tuple[pa.Table | None, pa.Table, tuple[Field, ...], str]:
        """Rows of the run and of now that must be equal, their columns, and what to know of that.

        The first is None where they cannot be compared.
        """
        if isinstance(stage.fragment, BloomBuildExec):
            return None, now, fields, "the Bloom filters of its tasks are not compared"
        if [c.type for c in before.schema] != [c.type for c in now.schema]:
            return None, now, fields, "the run has other columns, so its rows are not compared"
        if not depends_on_tasks(stage) or stage is self._run.graph.head:
            return before, now, fields, ""
        merging = merging_stage(self._run.graph, stage)
        if merging is None:
            note = (
                "its rows depend on how its input was divided among tasks, so they are not "
                "compared with those of the run"
            )
            return None, now, fields, note
        note = "rows of its tasks are merged before they are compared with those of the run"
        before, now = (merged(self._run, merging, rows) for rows in (before, now))
        return before, now, _named(merging.schema), note


def stage_fields(run: RecordedRun, stage: Stage) -> tuple[Field, ...]:
    """The columns of a stage of a run, each with a name of its own; of the head, the result's."""
    graph, pointer = run.graph, run.pointers.get(stage.stage_id)
    if stage is not graph.head:
        return _named(stage.schema)
    if pointer is not None and pointer.columns:
        return _named(pointer.fields)
    return _named(graph.result if len(graph.result) == len(stage.schema) else stage.schema)


def _named(fields: Sequence[Field]) -> tuple[Field, ...]:
    names = column_names(fields)
    return tuple(Field(name, f.dtype) for name, f in zip(names, fields, strict=True))
