"""A deduplicated table on S3: append, compaction, gc, racing writers."""

from __future__ import annotations

import datetime
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from infra.catalog.catalog import load_catalog
from infra.catalog.snapshot import take_snapshot
from infra.chunks.compaction import compact
from infra.chunks.expiry import collect_chunk_garbage
from infra.storage.local_store import LocalStore
from tests.infra.chunks.model import visible
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_a_table_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    root = s3_server.new_root()
    (tmp_path / "catalog.yaml").write_text(
        f"tables: {{t: {{kind: deduplicated, location: '{root}', primary_key: [k]}}}}"
    )
    catalog = load_catalog(tmp_path / "catalog.yaml", s3_server.options)
    table = catalog.chunk_table("t")

    def append(value: int) -> None:
        own = load_catalog(tmp_path / "catalog.yaml", s3_server.options).chunk_table("t")
        own.append([pa.table({"k": [0, value], "v": [value, value]})], sort=value % 2 == 0)

    threads = [threading.Thread(target=append, args=(value,)) for value in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = visible(table)
    assert set(expected) == {(0,), (1,), (2,), (3,)}
    info, _ = catalog.read("t")
    assert {chunk.store for chunk in info.chunks} == {f"s3://{root.split('/')[2]}"}
    assert all(chunk.uri.startswith("s3://") for chunk in info.chunks)
    assert [f.uri for f in take_snapshot(catalog, ["t"]).table("t").files] == [
        chunk.uri for chunk in info.chunks
    ]
    report = compact(table)
    assert (report.before.chunks, report.after.chunks, report.after.rows) == (3, 1, 4)
    assert visible(table) == expected
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    age = datetime.timedelta(days=7)
    (found,) = collect_chunk_garbage(LocalStore(str(tmp_path)), [table], older_than=age, now=now)
    assert len(found.replaced) == 3
    assert len(list(table.store.list("chunks"))) == 1
    assert visible(table) == expected
