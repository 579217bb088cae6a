"""Runs without Spark: real stages, tasks and commits in this process.

Only the Spark job is missing: tasks run in this process, from the same plain data that Spark would
carry, so that hundreds of runs take a minute.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.runtime.stages import schema_check
from stagecoach.infra.runtime.stages.run import Run, StageResult
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.infra.worker.task import run_task
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORCED = PlannerOptions(
    force_distribution=True, num_partitions=3, broadcast_bytes=0, inline_bytes=0
)

QUERIES = {
    "totals": "SELECT name, count(*) AS n, sum(k) AS s FROM t GROUP BY name ORDER BY name",
    "joined": "SELECT u.label, count(*) AS n, sum(t.k) AS s FROM t JOIN u ON t.name = u.name "
    "WHERE t.k > 10 GROUP BY u.label ORDER BY u.label",
    "shared": "WITH a AS (SELECT name, sum(k) AS s FROM t GROUP BY name) "
    "SELECT x.name, x.s, y.n FROM a x JOIN "
    "(SELECT a.s, count(*) AS n FROM a GROUP BY a.s) y ON x.s = y.s ORDER BY x.name",
}


def write_tables(folder: Path, rows: int = 2000) -> Path:
    """Write two small tables and their catalog file; return that."""
    names = [f"n{i % 7}" for i in range(rows)]
    tables = {
        "t": pa.table({"k": pa.array(range(rows), pa.int64()), "name": names}),
        "u": pa.table({"name": [f"n{i}" for i in range(9)], "label": ["a", "b", "c"] * 3}),
    }
    lines = ["tables:"]
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        for part in range(2):
            half = table.slice(part * table.num_rows // 2, (table.num_rows + 1) // 2)
            pq.write_table(half, folder / name / f"{part}.parquet", row_group_size=300)
        lines.append(f"  {name}: {{location: {name}}}")
    catalog = folder / "catalog.yaml"
    catalog.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return catalog


class LocalRuns:
    """Runs of queries over one storage root.

    Args:
        catalog: The catalog file.
        settings: The knobs; `parallelism` must be set.
    """

    def __init__(self, catalog: Path, settings: EngineSettings) -> None:
        self.settings = settings
        self.store: ObjectStore = settings.open_store()
        options = replace(settings.storage_options, timeout_seconds=30.0, retry_seconds=30)
        self._patient = replace(settings, storage_options=options)
        self._patient_store = self._patient.open_store()
        self._catalog: FileCatalog = load_catalog(catalog, settings.storage_options)

    def plan(self, name: str, options: PlannerOptions = FORCED, sql: str = "") -> StageGraph:
        """The plan of a query."""
        return plan_query(sql or QUERIES[name], self._catalog, options, name=name)

    def context(self, graph: StageGraph, **changes: Any) -> Run:
        """A new run."""
        spark = cast("Callable[[], SparkSession]", lambda: _NO_SPARK)
        changes = {"store": self.store, **changes}
        context = new_context(graph, self.settings, self._catalog, spark, **changes)
        patient = self.patient(context)  # no fault is met before the run has begun
        mark_begun(patient.store, context.root_run_id, context.run_id)
        self._know_schema(patient)
        return context

    def patient(self, context: Run) -> Run:
        """The run with time for its requests, however busy the machine is."""
        return replace(context, settings=self._patient, store=self._patient_store)

    def end(self, context: Run) -> None:
        """Say that a run is over, for garbage collection."""
        mark_ended(self.store, context.root_run_id, context.run_id)

    def run(self, graph: StageGraph, **changes: Any) -> tuple[pa.Table, list[StageResult]]:
        """Run all stages in order; the result and how each stage ended."""
        context = self.context(graph, **changes)
        with tasks_here():
            return run_stages(context)

    @staticmethod
    def _know_schema(context: Run) -> None:
        """Put Spark's analysis where it is looked for: the plan's own columns."""
        graph = context.graph
        key = layout.analysis(schema_check._key(context))
        columns = [[field.name, str(field.dtype)] for field in graph.result]
        context.store.put_if_absent(key, json.dumps({"columns": columns}).encode())


@contextlib.contextmanager
def tasks_here(before: Callable[[TaskSpec], None] | None = None) -> Iterator[None]:
    """Let the tasks of DuckDB stages run in this process while the block does.

    Args:
        before: Called in the thread of each task before it runs.
    """

    def run_one(text: str) -> TaskReport:
        spec = TaskSpec.from_dict(json.loads(text))
        if before is not None:
            before(spec)
        report = run_task(spec)
        return TaskReport.from_dict(json.loads(json.dumps(report.to_dict())))

    def run_tasks(_: object, specs: Sequence[TaskSpec]) -> list[TaskReport]:
        # Through JSON, as specs and reports go through Spark.
        payload = [json.dumps(spec.to_dict()) for spec in specs]
        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(run_one, payload))

    with mock.patch.object(execution, "run_tasks", run_tasks):
        yield


class _NoSpark:
    """A session that nobody runs anything on."""

    class _Context:
        master = "local"

        def __init__(self) -> None:
            self._jsc = self

        def sc(self) -> Self:
            return self

        def isStopped(self) -> bool:
            return False

        def setJobGroup(self, *_: object, **__: object) -> None:
            """Nothing runs."""

        def clearJobGroup(self) -> None:
            """Nothing runs."""

    sparkContext = _Context()


_NO_SPARK = _NoSpark()
