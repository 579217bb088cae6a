"""Published tables on S3: files, commits, catalog, gc, and racing writers."""

from __future__ import annotations

import datetime
import json
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.infra.formats.published.outputs import publish_rows
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server

pytestmark = pytest.mark.s3


def test_a_table_on_s3(s3_server: S3Server) -> None:
    store = open_store(s3_server.new_root(), s3_server.options)
    for value in (1, 2):
        rows = pa.table({"k": ["ü =x", None], "n": pa.array([value, -value], pa.int64())})
        published = publish_rows(
            store,
            rows,
            partition_by=("k",),
            mode="replace_partition",
            partition_keys=("a",),
            keep_versions=1,
        )
    assert published.version.number == 2
    assert json.loads(store.read_bytes(paths.table_current("t")))["version"] == 2
    store.delete([paths.table_current("t")])
    assert read_current(store, "t") == published.version

    tables = PublishedCatalog(FileCatalog([], origin="none"), store, [PlannedTable(name="t")])
    state = tables.state("t")
    info, snapshot = state.info, state.snapshot
    assert [f.name for f in info.columns] == ["n", "k"]
    assert [file.uri for file in snapshot.files] == sorted(
        store.uri(key) for key in published.version.file_keys()
    )
    keys = published.version.file_keys()
    values = [pq.read_table(store.open_input(key))["n"].to_pylist() for key in keys]
    assert sorted(values) == [[-2], [2]]

    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    report = collect_garbage(store, older_than=datetime.timedelta(days=7), now=later)
    assert [(v.table, v.numbers, len(v.keys)) for v in report.versions] == [("t", (1,), 3)]
    assert tables.state("t").info == info


def test_merges_on_s3(s3_server: S3Server) -> None:
    store = open_store(s3_server.new_root(), s3_server.options)
    names = ("id", "k", "x")
    first = pa.table(dict(zip(names, ([1, 2, 3], ["a", "b", "a"], [0.0, None, 1.5]), strict=True)))
    publish_rows(store, first, partition_by=("k",))
    flags = [False, True, False]
    late = pa.table(dict(zip(names, ([1, 3, 4], ["a", "a", "c"], [9.0, 9.0, 9.0]), strict=True)))
    late = late.append_column("gone", pa.array(flags))
    merge = {"mode": "merge", "key": ("id", "k"), "delete_column": "gone", "partition_by": ("k",)}
    version = publish_rows(store, late, **merge).version
    found = {
        file.partition: pq.read_table(store.open_input(key)).to_pylist()
        for file, key in zip(version.files, version.file_keys(), strict=True)
    }
    assert found == {
        ("a",): [{"id": 1, "x": 9.0}],
        ("b",): [{"id": 2, "x": None}],
        ("c",): [{"id": 4, "x": 9.0}],
    }


def test_racing_writers_on_s3(s3_server: S3Server) -> None:
    root = s3_server.new_root()
    errors: list[BaseException] = []

    def run(key: str) -> None:
        store = open_store(root, s3_server.options)
        try:
            rows = pa.table({"k": [key]})
            publish_rows(store, rows, mode="replace_partition", partition_keys=(key,))
        except BaseException as error:  # noqa: BLE001 -- shown by the test's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f"k{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    version = read_current(open_store(root, s3_server.options), "t")
    assert version is not None
    # Whole, whatever this server makes of conditional writes; none lost where it honours them.
    assert {file.partition_key for file in version.files} == set(version.partition_keys)
