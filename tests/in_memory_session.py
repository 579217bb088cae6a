"""A session whose queries run in this process on DuckDB, without Spark and Dagster.

Its results are real ones: their rows are map files of a storage root, read by the same code.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from stagecoach.api.cancelling import Cancellation
from stagecoach.api.result import Result
from stagecoach.api.session import PlannedRun, Session, connect
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.engines.protocol import Resources
from stagecoach.infra.runtime.in_memory.graph_run import MemoryRun
from stagecoach.planner.plan.literal_text import parse_literal
from tests.stage_outputs import commit_files, write_map_file

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.terminal.progress import StageProgress


class InMemorySession(Session):
    """Runs queries on DuckDB over tables in memory.

    Attributes:
        before_run: Is called when a run has begun.
    """

    tables: Mapping[str, pa.Table]
    before_run: Callable[[], None] = staticmethod(lambda: None)

    def run(
        self,
        planned: PlannedRun,
        *,
        fresh: bool = False,
        progress: StageProgress | None = None,
        debug: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Result:
        del fresh, debug
        self._check_open()
        self.before_run()
        if cancellation is not None:
            cancellation.check()
        graph = planned.graph
        run = MemoryRun(
            graph=graph,
            tables=self.tables,
            values={
                name: parse_literal(value.text, value.dtype, graph.time_zone)
                for name, value in planned.parameters.items()
                if value.text is not None
            },
            resources=Resources(
                time_zone=graph.time_zone,
                memory_bytes=512 << 20,
                spill_dir=str(Path(self.settings.storage_root) / "spill"),
            ),
        )
        rows = run.result()
        fingerprint = uuid.uuid4().hex * 2
        batches = rows.to_batches(max_chunksize=1000)
        written = write_map_file(self.store, fingerprint, batches, rows.schema)
        commit_files(self.store, fingerprint, [written], rows.schema)
        stages = [StageMetadata() for _ in graph.stages[:-1]]
        head = StageMetadata(rows=rows.num_rows, fingerprint=fingerprint, seconds=0.1)
        if progress is not None:
            progress.stage_started(graph.head)
            progress.stage_finished(graph.head, head)
        return Result(graph=graph, run_id="run", stages=(*stages, head), store=self.store)


def open_in_memory(folder: Path, tables: Mapping[str, pa.Table]) -> InMemorySession:
    """Write the tables and a catalog into a folder, and open a session over them."""
    lines = ["tables:"]
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(table, folder / name / "part.parquet")
        lines.append(f"  {name}: {{location: {name}}}")
    (folder / "catalog.yaml").write_text("\n".join(lines))
    opened = connect(folder / "catalog.yaml", folder / "storage", offline=True)
    session = InMemorySession(
        catalog=opened.base_catalog,
        settings=opened.settings,
        options=opened.options,
        offline=True,
    )
    session.tables = {name.lower(): table for name, table in tables.items()}
    return session
