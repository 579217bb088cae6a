"""A storage root with something of every kind in it, and a query over each of its tables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

from benchmarks.faults.local_runs import FORCED, tasks_here
from stagecoach.assets.plans.pinned import PinnedPlans
from stagecoach.assets.project.queries import Query
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.spark import engine
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.log import table_log
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.formats.version_log import VersionLog
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.spark import session
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.upkeep.manifests import manifest_at
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.infra.formats.published.outputs import publish_rows
from tests.security.bit_rot import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("published", "parquet_chunks", "arrow_chunks")
ROWS = 3_000
_CATALOG = """tables:
  parquet_chunks: {{kind: deduplicated, location: {root}/parquet_chunks, primary_key: [id]}}
  arrow_chunks: {{kind: deduplicated, location: {root}/arrow_chunks, primary_key: [id]}}
"""
_SQL = (
    "SELECT name, count(*) AS n, sum(id) AS ids, sum(value) AS total, min(note) AS lowest, "
    "max(note) AS highest FROM {table} GROUP BY name ORDER BY name"
)

_NO_SPARK = mock.MagicMock(name="a session that nobody runs anything on")


@dataclass
class Warehouse:
    """Tables, and the runs over them.

    Attributes:
        folder: Where the catalog file is, and the deduplicated tables unless they are remote.
        root: URL of the folder of deduplicated tables.
        settings: Of runs.
        spark: The session of runs that need one; None if tasks run in this process.
        last_run: The run that was made with the warehouse.
    """

    folder: Path
    root: str
    settings: EngineSettings
    spark: SparkSession | None = None
    store: ObjectStore = field(init=False)
    last_run: str = ""

    def __post_init__(self) -> None:
        self.store = self.settings.open_store()

    # ---------------------------------------------------------------- tables

    def catalog(self) -> PublishedCatalog:
        """The tables, of which nothing has been read yet."""
        base = load_catalog(self.folder / "catalog.yaml", options=self.settings.storage_options)
        return PublishedCatalog(base, self.store, [PlannedTable(name="published")])

    def chunk_table(self, name: str) -> ChunkTable:
        """A deduplicated table."""
        options = self.settings.storage_options
        return chunk_table(load_catalog(self.folder / "catalog.yaml", options=options), name)

    def published_log(self) -> VersionLog[TableVersion]:
        """The versions of the published table."""
        return table_log(self.store, "published")

    def publish_more(self) -> None:
        """Append rows to the published table."""
        publish_rows(self.store, rows(9 * ROWS, 10), table="published", mode="append")

    # ---------------------------------------------------------------- runs

    def plan(self, table: str, *, whole: bool = False) -> StageGraph:
        """The plan of the query over a table.

        Args:
            table: Which one.
            whole: Whether it is one that only Spark can run.
        """
        catalog = cast("Catalog", self.catalog())
        source = f"{table} TABLESAMPLE (100 PERCENT)" if whole else table
        return plan_query(_SQL.format(table=source), catalog, FORCED, name="q")

    def kept_plan(self) -> StageGraph:
        """The plan that is kept of the query over the published table; planned anew if damaged."""
        plans = PinnedPlans(
            lambda query, catalog: plan_query(query.sql, catalog, FORCED, name=query.name),
            self.store,
            FORCED,
            day="2026-01-01",
        )
        catalog = cast("Catalog", self.catalog())
        return plans(Query(name="q", sql=_SQL.format(table="published")), catalog)

    def context(self, graph: StageGraph, **changes: Any) -> Run:
        """A run; nothing that others have computed is reused unless the changes say so."""
        spark = cast("Callable[[], SparkSession]", lambda: self.spark or _NO_SPARK)
        changes = {"fresh": True, "store": self.store, **changes}
        return new_context(graph, self.settings, self.catalog(), spark, **changes)

    def answer(self, graph: StageGraph, **changes: Any) -> list[dict[str, Any]]:
        """The rows of a run."""
        context = self.context(graph, **changes)
        with self.running(graph):
            return run_stages(context)[0].to_pylist()

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every table's query."""
        return {table: self.answer(self.plan(table)) for table in TABLES}

    def fingerprints(self) -> dict[str, list[str]]:
        """The fingerprints of every table's query, by which outputs are reused."""
        found = {}
        for table in TABLES:
            context = self.context(self.plan(table), fresh=False)
            found[table] = [context.fingerprints[i] for i in sorted(context.fingerprints)]
        return found

    @contextlib.contextmanager
    def running(self, graph: StageGraph) -> Iterator[None]:
        """Let tasks run in this process, and Spark say of the query what the plan says."""
        if self.spark is not None:
            yield
            return
        columns = [(item.name, str(item.dtype)) for item in graph.result]
        with (
            tasks_here(),
            mock.patch.object(session, "isolated_session"),
            mock.patch.object(engine, "analyze", lambda *_: columns),
        ):
            yield

    # ---------------------------------------------------------------- what can be damaged

    def manifests(self) -> list[Manifest]:
        """The outputs of the last run, by stage."""
        keys = [k for k in self.store.list(layout.SHUFFLE_ROOT) if k.endswith("/manifest.json")]
        found = [manifest_at(self.store, key) for key in keys]
        of_runs = [m for m in found if m is not None and m.query == "q"]
        return sorted(of_runs, key=lambda manifest: manifest.stage_id)

    def victims(self, kind: str) -> Sequence[tuple[ObjectStore, str]]:
        """Objects of a kind, with their stores."""
        here = self.store
        match kind:
            case "published file":
                version = self.published_log().current()
                assert version is not None
                return [(here, key) for key in version.file_keys()]
            case "parquet chunk" | "arrow chunk":
                table = self.chunk_table(kind.replace(" ", "_") + "s")
                return [(table.store, chunk.key) for chunk in table.read().chunks]
            case "chunk version" | "chunk hint":
                table = self.chunk_table("parquet_chunks")
                newest = layout.log_version("", table.log.numbers()[-1])
                key = newest if kind == "chunk version" else layout.log_current("")
                return [(table.store, key)]
            case "published version":
                number = self.published_log().numbers()[-1]
                return [(here, paths.table_version("published", number))]
            case "published hint":
                return [(here, paths.table_current("published"))]
            case "map file":
                return [(here, m.file_key(file)) for m in self.manifests() for file in m.files]
            case "index":
                return [(here, m.index_key) for m in self.manifests()]
            case "manifest":
                return [(here, layout.manifest(m.fingerprint)) for m in self.manifests()]
            case "snapshot":
                return [(here, layout.run_snapshot(self.last_run))]
            case "pointer":
                stages = f"{layout.run_prefix(self.last_run)}/stages"
                return [(here, key) for key in here.list(stages)]
        folder = {"plan": layout.PLANS_ROOT, "analysis": layout.ANALYSIS_ROOT}[kind]
        return [(here, key) for key in here.list(folder)]


def build_warehouse(
    folder: Path,
    *,
    root: str = "",
    options: StorageOptions | None = None,
    spark: SparkSession | None = None,
) -> Warehouse:
    """Make a warehouse.

    Args:
        folder: A local folder for it.
        root: URL of its storage; a folder below `folder` if not given.
        options: How to reach that.
        spark: The session of its runs; without one, tasks run in this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = root or str(folder / "storage")
    settings = EngineSettings(
        storage_root=f"{place}/root",
        storage_options=options or StorageOptions(fsync="never"),
        spill_dir=str(folder / "spill"),
        parallelism=2,
        memory_bytes=256 << 20,
        min_task_bytes=0,
    )
    (folder / "catalog.yaml").write_text(_CATALOG.format(root=place), encoding="utf-8")
    found = Warehouse(folder, place, settings, spark)
    publish_rows(found.store, rows(count=ROWS), table="published")
    publish_rows(found.store, rows(ROWS, ROWS), table="published", mode="append")
    for name in ("parquet_chunks", "arrow_chunks"):
        table = found.chunk_table(name)
        table.append([rows(count=ROWS)], sort=name == "parquet_chunks")
        table.append([rows(ROWS // 2, ROWS)], sort=name == "parquet_chunks")
    context = found.context(found.kept_plan(), fresh=False)
    with found.running(context.graph):
        run_stages(context)
    found.last_run = context.run_id
    return found
