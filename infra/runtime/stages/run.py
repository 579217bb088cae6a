"""A run of a query, and how a stage of it ended.

The snapshot, the parameter values and the fingerprints follow from the graph and the root run, so
every process that runs a stage of the run derives the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.snapshot import Snapshot, SnapshotSource, load_or_take
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.runtime.planning.fingerprint import stage_fingerprints
from stagecoach.infra.runtime.planning.plan_tasks import check_tables
from stagecoach.infra.runtime.records.parameters import bind_parameters
from stagecoach.infra.runtime.stages.own_commits import OwnCommits
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import Field

# It imports pyspark, which a run that reuses all of its stages need not wait for.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.spark.jobs import ProgressListener


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: its identity, what it is run with, and what follows from both, once.

    Args:
        graph: The planned query.
        run_id: The run.
        root_run_id: The first of the runs that this one re-executes; itself if it is the first.
        settings: The knobs.
        store: The storage root.
        catalog: Where the run's first process looks the tables up.
        parameters: Values by name; defaults and the run's clock fill in what is missing.
        spark: Gives the Spark session, started when it is first needed.
        progress: Told of completed tasks, from another thread.
        fresh: Whether nothing that other runs have computed may be reused.
        stages: Those that the run consists of; empty for all of the query. The snapshot of a run
            of a part has only the tables that this part needs: others may have no data yet.
        code_path: Folders in which workers look for the project's functions before Python's path.
        alone: Whether no other process runs stages of the run, which re-executes no other.
        recover: Whether lost outputs of upstream stages are computed again; None as the settings
            say.
        own: What this process knows of the run's commits.
    """

    graph: StageGraph
    run_id: str
    root_run_id: str
    settings: EngineSettings
    store: ObjectStore
    catalog: SnapshotSource
    parameters: Mapping[str, Literal] = field(default_factory=dict)
    spark: Callable[[], SparkSession] | None = None
    progress: ProgressListener | None = None
    fresh: bool = False
    stages: tuple[int, ...] = ()
    alone: bool = False
    recover: bool | None = None
    code_path: tuple[str, ...] = ()
    own: OwnCommits = field(default_factory=OwnCommits, init=False, compare=False, repr=False)

    @property
    def recovers(self) -> bool:
        """Whether lost outputs of upstream stages are computed again."""
        return self.settings.recover if self.recover is None else self.recover

    def stage_name(self, stage_id: int) -> str:
        """Name of a stage as messages show it."""
        return f"{self.graph.query}/stage_{stage_id}"

    @cached_property
    def session(self) -> Callable[[], SparkSession]:
        """What gives the Spark session."""
        if self.spark is not None:
            return self.spark
        from stagecoach.infra.spark.session import get_session

        return lambda: get_session(self.settings)

    def code_of(self, functions: tuple[ProjectFunction, ...]) -> FunctionSet:
        """These functions of the project, with where their code is."""
        return FunctionSet(functions, self.code_path if functions else ())

    @cached_property
    def values(self) -> Mapping[str, Literal]:
        """A value for every parameter of the graph."""
        return bind_parameters(self.graph, self.parameters, self.store, self.root_run_id)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The files that all stages of the run read."""
        names = self._tables
        snapshot = load_or_take(
            self.store, self.root_run_id, self.catalog, sorted(names), alone=self.alone
        )
        check_tables(self.graph, snapshot, names)
        return snapshot

    @cached_property
    def _needed(self) -> frozenset[int]:
        """The run's stages and all that come before them."""
        if not self.stages:
            return frozenset(range(len(self.graph.stages)))
        found: set[int] = set()
        left = list(self.stages)
        while left:
            if (stage_id := left.pop()) not in found:
                found.add(stage_id)
                left += self.graph.stages[stage_id].inputs
        return frozenset(found)

    @cached_property
    def _tables(self) -> frozenset[str]:
        names = {table for i in self._needed for table in self.graph.stages[i].tables}
        if self.graph.head.stage_id in self._needed:
            # Spark may have to run the whole query in its place.
            names.update(name for name, _ in self.graph.tables)
        return frozenset(names)

    @cached_property
    def fingerprints(self) -> Mapping[int, str]:
        """The fingerprint of every stage that the run needs, by number."""
        return stage_fingerprints(
            self.graph,
            self.snapshot,
            self.values,
            root_run_id=self.root_run_id,
            fresh=self.fresh,
            stages=self._needed,
            spark_conf=self.settings.spark_conf,
        )


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """How a stage ended.

    Args:
        stage_id: Which stage.
        fingerprint: Identity of its output.
        manifest: Its commit; None where it was deferred.
        reused: Whether it was committed already.
        deferred: Why it left its work to the head stage, or None.
        engine: What ran it (or had run it): `duckdb` or `spark`.
        fallback_reason: Why that is not the engine of the plan, or None.
        columns: The result's columns with Spark's names; empty but for the head stage.
        reports: What its tasks reported; empty where it was reused or deferred.
        seconds: Time that it took.
        recovered: What was lost upstream and was computed again meanwhile, in words.
    """

    stage_id: int
    fingerprint: str
    manifest: Manifest | None = None
    reused: bool = False
    deferred: str | None = None
    engine: str = ""
    fallback_reason: str | None = None
    columns: tuple[Field, ...] = ()
    reports: tuple[TaskReport, ...] = ()
    seconds: float = 0.0
    recovered: tuple[str, ...] = ()
