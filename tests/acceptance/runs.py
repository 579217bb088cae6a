"""Run queries below Dagster; return the result and what its stages did.

`Runner` calls `run_stage` as the assets do. With `in_process` the tasks of DuckDB stages run in this
process, one after another, from the same plain data that Spark would carry: everything but the Spark
job is real, and it is fast enough for the full product of queries and plans.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.runtime.stages.run_stage import (
    Run,
    StageResult,
    read_result,
    run_stage,
)
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.infra.worker.task import run_task
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.planning import plan_query

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Ran:
    """A query that has run.

    Args:
        graph: Its plan.
        stages: How each stage ended.
        table: The result.
    """

    graph: StageGraph
    stages: tuple[StageResult, ...]
    table: pa.Table

    @property
    def engines(self) -> list[str]:
        """What ran each stage."""
        return [s.engine for s in self.stages]


class Runner:
    """Runs queries over one catalog and one storage root.

    Args:
        catalog: The tables.
        settings: The knobs.
        spark: The session.
        in_process: Whether DuckDB tasks stay in this process.
    """

    def __init__(
        self,
        catalog: FileCatalog,
        settings: EngineSettings,
        spark: SparkSession,
        *,
        in_process: bool = False,
    ) -> None:
        self.catalog = catalog
        self.settings = settings
        self.store = settings.open_store()
        self._spark = spark
        self._in_process = in_process

    def run(
        self,
        sql: str,
        options: PlannerOptions,
        *,
        name: str = "query",
        parameters: Mapping[str, Literal] | None = None,
        fresh: bool = True,
        **changes: Any,
    ) -> Ran:
        """Plan and run a query.

        Args:
            sql: The query.
            options: How to plan it.
            name: Its name.
            parameters: Values of its parameters.
            fresh: Whether earlier results are not to be reused.
            changes: Other settings than the runner's, by name.
        """
        values = dict(parameters or {})
        specs = tuple(ParameterSpec(n, v.dtype) for n, v in values.items())
        graph = plan_query(sql, self.catalog, options, name=name, parameters=specs)
        run_id = uuid.uuid4().hex
        context = Run(
            graph=graph,
            run_id=run_id,
            root_run_id=run_id,
            settings=dataclasses.replace(self.settings, **changes),
            store=self.store,
            catalog=self.catalog,
            parameters=values,
            spark=lambda: self._spark,
            fresh=fresh,
        )
        with _tasks_here() if self._in_process else _tasks_in_spark():
            stages = tuple(run_stage(s.stage_id, context) for s in graph.stages)
        return Ran(graph, stages, read_result(context))


@contextmanager
def _tasks_in_spark() -> Iterator[None]:
    yield


@contextmanager
def _tasks_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "run_tasks", _run_here)
        yield


def _run_here(_: SparkSession, specs: Sequence[TaskSpec]) -> list[TaskReport]:
    # Through JSON, as specs and reports go through Spark.
    payload = [json.dumps(spec.to_dict()) for spec in specs]
    reports = [run_task(TaskSpec.from_dict(json.loads(text))) for text in payload]
    return [TaskReport.from_dict(json.loads(json.dumps(r.to_dict()))) for r in reports]


def store_settings(settings: EngineSettings, folder: Path) -> EngineSettings:
    """The settings with a storage root of its own, and tasks of any size split."""
    return dataclasses.replace(
        settings,
        storage_root=str(folder / "store"),
        spill_dir=str(folder / "spill"),
        min_task_bytes=0,
        parallelism=3,
    )
