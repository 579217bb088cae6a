"""What is compared: each takes SQL and gives the result as an Arrow table."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import sqlglot

from benchmarks.timing import Breakdown, StageClock
from stagecoach.api.session import Session
from stagecoach.infra.spark.session import get_session
from stagecoach.tpch import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.delayed import Traffic


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One run of a query.

    Args:
        seconds: From SQL text to Arrow table.
        table: The result.
        breakdown: What the seconds went into, where it is known.
        stages: What each stage did, where there are any.
        traffic: Requests and bytes to and from a store that is far away.
    """

    seconds: float
    table: pa.Table = field(repr=False)
    breakdown: Breakdown | None = None
    stages: tuple[Mapping[str, Any], ...] = ()
    traffic: Traffic | None = None


class Contender(Protocol):
    """Something that runs queries."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    def run(self, name: str, sql: str) -> Sample:
        """Run a query and return when its rows are here."""
        ...

    def clean_up(self) -> None:
        """Remove what the last runs left on disk; not timed."""
        ...


class Stagecoach:
    """The whole way: planner, a Dagster run in this process, Spark jobs, durable shuffles.

    Every stage runs (`fresh`): nothing that an earlier run computed is reused.

    Args:
        session: Over the tables; its storage is this contender's own.
        traffic: What has gone to and from the store so far.
    """

    name = "stagecoach"

    def __init__(self, session: Session, traffic: Callable[[], Traffic] | None = None) -> None:
        self.session = session
        self._traffic = traffic

    def run(self, name: str, sql: str) -> Sample:
        """Run a query through Dagster."""
        clock = StageClock()
        before = self._traffic() if self._traffic else None
        start = time.perf_counter()
        planned = self.session.plan(sql, name=name)
        plan_end = time.perf_counter()
        with clock.watching_jobs():
            result = self.session.run(planned, fresh=True, progress=clock)
        run_end = time.perf_counter()
        table = result.to_arrow()
        end = time.perf_counter()
        moved = self._traffic().since(before) if self._traffic and before else None
        manifests = {s.stage_id: result.manifest(s.stage_id) for s in planned.graph.stages}
        parts = clock.run_breakdown(planned.graph, manifests, run_end - plan_end)
        parts += Breakdown(plan=plan_end - start, result=end - run_end)
        on_path = clock.critical_path(planned.graph)
        stages = tuple(
            {
                "stage_id": stage.stage_id,
                "title": stage.title,
                "engine": told.engine,
                "fallback_reason": told.fallback_reason,
                "tasks": told.tasks,
                "rows": told.rows,
                "bytes": told.bytes,
                "seconds": round(told.seconds or 0.0, 3),
                "critical": stage.stage_id in on_path,
                "breakdown": clock.stage_breakdown(stage.stage_id, manifests).to_dict(),
            }
            for stage, told in zip(planned.graph.stages, result.stages, strict=True)
        )
        return Sample(
            seconds=end - start, table=table, breakdown=parts, stages=stages, traffic=moved
        )

    def clean_up(self) -> None:
        """Remove the shuffles and runs; what Spark said about result schemas stays."""
        root = self.session.settings.storage_root
        store = self.session.settings.open_store()
        for folder in ("shuffle", "runs"):
            if store.is_local:
                shutil.rmtree(Path(root) / folder, ignore_errors=True)
            else:
                store.delete(list(store.list(folder)))


class SparkSql:
    """Plain Spark SQL in the same Spark session, adaptive execution on, as Spark's defaults are.

    Args:
        session: Whose Spark session it is.
        data: Folder with a folder for each table.
    """

    name = "spark"

    def __init__(self, session: Session, data: Path) -> None:
        self._spark = get_session(session.settings).newSession()
        for table in TABLES:
            self._spark.read.parquet(str(data / table)).createOrReplaceTempView(table)

    def run(self, name: str, sql: str) -> Sample:
        """Run a query and collect its rows."""
        start = time.perf_counter()
        table = self._spark.sql(sql).toArrow()
        return Sample(seconds=time.perf_counter() - start, table=table)

    def clean_up(self) -> None:
        """Nothing is left."""


class DuckDb:
    """DuckDB alone, with a thread for each core: the limit of what one machine can do.

    Args:
        data: Folder with a folder for each table.
        memory_bytes: Its memory limit.
        spill: Folder that it may spill to.
    """

    name = "duckdb"

    def __init__(self, data: Path, memory_bytes: int, spill: Path) -> None:
        self._connection = duckdb.connect(
            config={
                "threads": os.cpu_count() or 1,
                "memory_limit": f"{memory_bytes}B",
                "temp_directory": str(spill),
            }
        )
        for table in TABLES:
            files = str(data / table / "*.parquet").replace("'", "''")
            self._connection.execute(
                f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}')"
            )

    def run(self, name: str, sql: str) -> Sample:
        """Run a query, translated by sqlglot before the clock starts."""
        translated = sqlglot.transpile(sql, read="spark", write="duckdb")[0]
        start = time.perf_counter()
        table = self._connection.sql(translated).to_arrow_table()
        return Sample(seconds=time.perf_counter() - start, table=table)

    def clean_up(self) -> None:
        """Nothing is left."""
