"""Counts the requests and the bytes of metadata of one shuffle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.rclone import RcloneServer
from stagecoach.api.session import connect
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import StorageOptions
from tests.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from stagecoach.api.session import Session

_BUCKET = "costs"
_SQL = "SELECT k, sum(v) AS v FROM facts GROUP BY k"
_ROWS_OF_A_RANGE = 40


@dataclass(frozen=True)
class Shuffle:
    """What one shuffle took.

    Args:
        tasks: Map tasks, M.
        partitions: Partitions, N, each read by a task of its own.
        ranges: Pairs of a map file and a partition that it has rows of.
        writes: Requests that write map files.
        reads: Requests that read map files.
        commit: Requests to index, manifest, claim and other objects of the stage's folder.
        run: All other requests of the run: its snapshot, pointers, and the tables.
        index_bytes: Size of the index.
        manifest_bytes: Size of the manifest.
    """

    tasks: int
    partitions: int
    ranges: int
    writes: int
    reads: int
    commit: int
    run: int
    index_bytes: int
    manifest_bytes: int

    def to_dict(self) -> dict[str, int]:
        """The fields by name."""
        return asdict(self)


class Bench:
    """A session whose tables and storage are on an S3 server, behind a proxy that counts.

    Args:
        folder: What the server serves; also the catalogs.
        proxy: In front of the server.
        options: How to reach the proxy.
    """

    def __init__(self, folder: Path, proxy: FaultProxy, options: StorageOptions) -> None:
        self._folder = folder
        self._proxy = proxy
        self._options = options

    def shuffle(self, tasks: int, partitions: int) -> Shuffle:
        """Run a query whose first stage has so many tasks and partitions."""
        catalog = _catalog(self._folder, tasks, partitions)
        settings = {
            "storage_options": self._options,
            "target_task_bytes": 1,
            "min_task_bytes": 1,
            "parallelism": tasks,
            "adaptive": False,
            "warm": "never",
        }
        options = {
            "force_distribution": True,
            "num_partitions": partitions,
            "broadcast_bytes": 0,
            "runtime_filters": False,
        }
        storage = f"s3://{_BUCKET}/storage-{tasks}-{partitions}"
        with connect(catalog, storage, settings=settings, options=options) as session:
            return self._counted(session, tasks, partitions)

    def _counted(self, session: Session, tasks: int, partitions: int) -> Shuffle:
        planned = session.plan(_SQL, name="costs")
        self._proxy.requests.clear()
        result = session.run(planned, fresh=True)
        seen = list(self._proxy.requests)
        manifest = result.manifest(0)
        found = (len(manifest.files), manifest.partitioning.num_partitions)
        if found != (tasks, partitions):
            raise RuntimeError(
                f"the shuffle has {found} tasks and partitions, not {(tasks, partitions)}"
            )
        place = layout.shuffle_prefix(manifest.fingerprint)
        names = {file.name for file in manifest.files}
        kinds = Counter(_kind(method, path, place, names) for method, path in seen)
        store = session.settings.open_store()
        return Shuffle(
            tasks=tasks,
            partitions=partitions,
            ranges=tasks * partitions,
            writes=kinds["write"],
            reads=kinds["read"],
            commit=kinds["commit"],
            run=kinds["run"],
            index_bytes=manifest.index_bytes,
            manifest_bytes=store.size(layout.manifest(manifest.fingerprint)),
        )


def _catalog(folder: Path, tasks: int, partitions: int) -> Path:
    return folder / f"facts-{tasks}-{partitions}.yaml"


def _write_table(folder: Path, tasks: int, partitions: int) -> None:
    """A table of a file for each task, with rows of every partition in each, and its catalog."""
    catalog = _catalog(folder, tasks, partitions)
    place = folder / "s3" / _BUCKET / catalog.stem
    place.mkdir(parents=True)
    rows = partitions * _ROWS_OF_A_RANGE
    for task in range(tasks):
        keys = np.arange(rows, dtype=np.int64) + task * rows
        pq.write_table(pa.table({"k": keys, "v": keys}), place / f"part-{task:05d}.parquet")
    location = f"s3://{_BUCKET}/{catalog.stem}"
    catalog.write_text(f"tables:\n  facts:\n    location: {location}\n    format: parquet\n")


@contextmanager
def bench(folder: Path, points: Iterable[tuple[int, int]]) -> Iterator[Bench]:
    """A server and a proxy, while the block runs.

    Args:
        folder: An empty one.
        points: Tasks and partitions of the shuffles to come. Their tables are written first, since
            the server takes a while to see files that are written behind it.
    """
    for tasks, partitions in points:
        _write_table(folder, tasks, partitions)
    with (
        RcloneServer(folder / "s3", _BUCKET) as server,
        FaultProxy(target=server.url).running() as proxy,
    ):
        yield Bench(folder, proxy, server.options(proxy.url))


def _kind(method: str, path: str, place: str, names: set[str]) -> str:
    """What a request is for."""
    key = path.partition("?")[0]
    if place not in key:
        return "run"
    if key.rpartition("/")[2] not in names:
        return "commit"
    return "read" if method in ("GET", "HEAD") else "write"
