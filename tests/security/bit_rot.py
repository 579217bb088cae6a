"""Tables whose files rot: a published table, deduplicated ones, and queries over them."""

from __future__ import annotations

import dataclasses
import os
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.snapshot import SnapshotSource, take_snapshot
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.runtime.planning.plan_tasks import StageReads, build_specs
from stagecoach.infra.runtime.stages.damaged_inputs import located
from stagecoach.infra.shuffle.commit import commit_manifest
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.infra.worker.task import output_schema, run_task
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from tests.infra.formats.published.outputs import publish_rows

ROWS = 6_000
SQL = (
    "SELECT count(*) AS n, sum(id) AS ids, sum(value) AS values, count(DISTINCT name) AS names, "
    "max(name) AS last, sum(length(note)) AS notes FROM t"
)
ONE_STAGE = PlannerOptions(inline_bytes=1 << 30)
CHUNK_CATALOG = """tables:
  t:
    kind: deduplicated
    location: {location}
    primary_key: [id]
"""


def rows(start: int = 0, count: int = ROWS) -> pa.Table:
    """Numbers, texts of a dictionary, and texts that are all different."""
    numbers = random.Random(start)
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int64()),
            "value": pa.array([numbers.randrange(1 << 40) for _ in range(count)], pa.int64()),
            "name": pa.array([f"name {numbers.randrange(50)}" for _ in range(count)]),
            "note": pa.array([f"{numbers.randrange(1 << 30):x}" * 2 for _ in range(count)]),
        }
    )


@dataclass(frozen=True)
class Rotting:
    """A table called `t`, and how it is read.

    Attributes:
        store: Storage root of the runs (and of a published table).
        tables: Where the table's files are.
        keys: Their keys there.
        catalog: Makes a catalog that has read nothing yet.
        settings: Of runs.
    """

    store: ObjectStore
    tables: ObjectStore
    keys: tuple[str, ...]
    catalog: Callable[[], SnapshotSource]
    settings: EngineSettings

    def plan(self, sql: str = SQL) -> StageGraph:
        """The query as one stage, planned before anything has rotted."""
        catalog: Any = self.catalog()
        return plan_query(sql, catalog, ONE_STAGE, name="q")

    def answer(self, graph: StageGraph) -> list[dict[str, Any]]:
        """The result, computed in this process."""
        snapshot = take_snapshot(self.catalog(), ["t"])
        fingerprint = uuid.uuid4().hex * 2  # of the same one the first commit would count
        (stage,) = graph.stages
        settings = dataclasses.replace(self.settings)
        specs = build_specs(
            StageReads(graph, stage, snapshot, {}, {}),
            settings,
            self.store,
            sql=render_fragment(stage, "duckdb", {}),
            fingerprint=fingerprint,
            parallelism=1,
        ).specs
        reports = [run_task(TaskSpec.from_dict(spec.to_dict())) for spec in specs]
        for report in reports:
            if report.failure is not None:
                error = report.failure.to_error("q/stage_0", report.task_index)
                if isinstance(error, DamagedFileError):
                    raise located(error, snapshot, self.store)
                raise error
        manifest = commit_manifest(
            self.store,
            fingerprint,
            [report.file for report in reports if report.file is not None],
            plan_hash=stage.plan_hash,
            query="q",
            stage_id=0,
            engine="duckdb",
            schema=output_schema(tuple(f.dtype for f in stage.schema)),
            partitioning=OutputPartitioning(),
            codec=settings.codec,
            created_at="2026-01-01T00:00:00Z",
        )
        return read_table(self.store, manifest).to_pylist()

    @contextmanager
    def flipped(self, key: str, position: int, bit: int = 0) -> Iterator[None]:
        """One bit of a file is another while the block runs; size and time are as before."""
        good = self.tables.read_bytes(key)
        bad = bytearray(good)
        bad[position] ^= 1 << bit
        self._write(key, bytes(bad))
        try:
            yield
        finally:
            self._write(key, good)

    def path(self, key: str) -> Path:
        """The file, of a local table."""
        return Path(self.tables.uri(key).removeprefix("file://"))

    def _write(self, key: str, content: bytes) -> None:
        if not self.tables.is_local:
            self.tables.write_bytes(key, content)
            return
        status = self.path(key).stat()
        with open(self.path(key), "r+b") as file:
            file.write(content)
        os.utime(self.path(key), ns=(status.st_atime_ns, status.st_mtime_ns))


def published(store: ObjectStore, settings: EngineSettings) -> Rotting:
    """A published table of two files."""
    publish_rows(store, rows(), table="t", target_file_bytes=1)
    publish_rows(store, rows(ROWS), table="t", mode="append")
    version = read_current(store, "t")
    assert version is not None
    base = load_catalog_text(settings, "tables: {}\n")
    planned = [PlannedTable(name="t")]
    return Rotting(
        store,
        store,
        tuple(version.file_keys()),
        lambda: PublishedCatalog(base, store, planned),
        settings,
    )


def deduplicated(
    store: ObjectStore, settings: EngineSettings, location: str, *, sort: bool
) -> Rotting:
    """A deduplicated table of two chunks that share half of their keys."""
    catalog = load_catalog_text(settings, CHUNK_CATALOG.format(location=location))
    table = chunk_table(catalog, "t")
    table.append([rows()], sort=sort)
    version = table.append([rows(ROWS // 2)], sort=sort).version

    def fresh() -> FileCatalog:
        return load_catalog_text(settings, CHUNK_CATALOG.format(location=location))

    keys = tuple(chunk.key for chunk in version.chunks)
    return Rotting(store, table.store, keys, fresh, settings)


def load_catalog_text(settings: EngineSettings, text: str) -> FileCatalog:
    """The catalog of a text, with the storage options of the settings."""
    path = Path(settings.spill_dir) / "catalog.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return load_catalog(path, options=settings.storage_options)


def places(content: bytes) -> dict[str, int]:
    """A byte of each kind of a Parquet file with a dictionary, by name."""
    metadata = pq.read_metadata(pa.BufferReader(content))
    chunk = metadata.row_group(0).column(metadata.schema.names.index("name"))
    length = int.from_bytes(content[-8:-4], "little")
    return {
        "dictionary page": chunk.dictionary_page_offset + 40,
        "dictionary header": chunk.dictionary_page_offset + 2,
        "page header": chunk.data_page_offset + 2,
        "data page": middle(chunk),
        "footer": len(content) - 8 - length // 2,
        "length of the footer": len(content) - 7,
        "trailer": len(content) - 2,
    }


def middle(chunk: Any) -> int:
    """A byte in the middle of the data pages of a column chunk (of pyarrow's metadata)."""
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return (chunk.data_page_offset + start + chunk.total_compressed_size) // 2


def random_places(content: Sequence[int] | bytes, count: int, seed: int) -> list[tuple[int, int]]:
    """Random positions and bits."""
    numbers = random.Random(seed)
    return [(numbers.randrange(len(content)), numbers.randrange(8)) for _ in range(count)]
