"""What passes on the way to an object store, and what is lost: small objects are read again.

A body that arrives damaged, and a 404 that a cache kept from before the object was written, pass
within moments. They end no run. What stays damaged or missing is found after a few tries.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.formats.snapshot import load_or_take
from stagecoach.infra.runtime.records.pointers import StagePointer, read_pointer, write_pointer
from stagecoach.infra.runtime.stages.result_rows import result_batches
from stagecoach.infra.shuffle.commit import load_index, load_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.storage import checked_json, layout, rereads
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.rereads import TRIES, RecentWrites, reread
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import BIGINT, Field
from tests.fault_proxy import Fault, FaultProxy, Kind
from tests.s3_server import S3Server, s3_server
from tests.stage_outputs import commit_files, write_map_file

__all__ = ["s3_server"]

FINGERPRINT = "a" * 64
SCHEMA = pa.schema([("c0", pa.int64())])
PARTITIONS = OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=4)
DAMAGED: tuple[Kind, ...] = ("short", "flip")


@pytest.fixture(scope="module")
def network(s3_server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3_server.endpoint_url).running() as running:
        yield running


@pytest.fixture
def proxy(network: FaultProxy) -> Iterator[FaultProxy]:
    network.requests.clear()
    yield network
    network.clear()


@pytest.fixture
def store(proxy: FaultProxy, s3_server: S3Server) -> ObjectStore:
    return open_store(s3_server.new_root(), replace(s3_server.options, endpoint_url=proxy.url))


@pytest.fixture
def elsewhere(store: ObjectStore, s3_server: S3Server) -> ObjectStore:
    """The same root as another process sees it, past the proxy."""
    return open_store(store.to_dict()["url"], s3_server.options)


def commit(store: ObjectStore) -> Manifest:
    batch = pa.record_batch({"c0": pa.array(np.arange(1000))}, schema=SCHEMA)
    file = write_map_file(store, FINGERPRINT, [batch], SCHEMA, PARTITIONS)
    return commit_files(store, FINGERPRINT, [file], SCHEMA, PARTITIONS)


def stale(path: str, times: int = 2) -> Fault:
    """As a cache says that asked for the object before it was written."""
    return Fault("status", status=404, times=times, path=path)


@pytest.mark.s3
@pytest.mark.parametrize("kind", DAMAGED)
def test_a_manifest_that_arrives_damaged(
    kind: Kind, store: ObjectStore, elsewhere: ObjectStore, proxy: FaultProxy
):
    made = commit(elsewhere)
    fault = proxy.add(Fault(kind, times=2, method="GET", path=r"manifest\.json"))
    assert load_manifest(store, FINGERPRINT) == made
    assert fault.met == 2


@pytest.mark.s3
@pytest.mark.parametrize("kind", DAMAGED)
def test_an_index_that_arrives_damaged(
    kind: Kind, store: ObjectStore, elsewhere: ObjectStore, proxy: FaultProxy
):
    made = commit(elsewhere)
    fault = proxy.add(Fault(kind, times=1, method="GET", path=r"index"))
    assert load_index(store, made).equals(load_index(elsewhere, made))
    assert fault.met == 1


@pytest.mark.s3
def test_an_index_and_a_map_file_that_are_not_seen_yet(
    store: ObjectStore, elsewhere: ObjectStore, proxy: FaultProxy
):
    made = commit(elsewhere)
    faults = [proxy.add(stale("index")), proxy.add(stale(made.files[0].name))]
    rows = pa.Table.from_batches(result_batches(store, made, (Field("x", BIGINT),)))
    assert sorted(rows.column("x").to_pylist()) == list(range(1000))
    assert all(fault.met for fault in faults)


@pytest.mark.s3
def test_a_manifest_that_a_run_has_pinned_is_there(
    store: ObjectStore, elsewhere: ObjectStore, proxy: FaultProxy
):
    made = commit(elsewhere)
    proxy.add(stale(r"manifest\.json", times=1))
    assert load_manifest(store, FINGERPRINT) is None  # whoever only looks does not wait
    proxy.add(stale(r"manifest\.json"))
    assert load_manifest(store, FINGERPRINT, expected=True) == made


@pytest.mark.s3
def test_a_commit_that_does_not_see_itself(store: ObjectStore, proxy: FaultProxy):
    fault = proxy.add(replace(stale(r"manifest\.json"), method="GET"))
    made = commit(store)
    assert fault.met == 2
    puts = [path for method, path in proxy.requests if method == "PUT" and "manifest" in path]
    assert len(puts) == 1
    assert load_manifest(store, FINGERPRINT) == made


@pytest.mark.s3
def test_what_stays_damaged_is_damaged(
    store: ObjectStore, elsewhere: ObjectStore, proxy: FaultProxy
):
    commit(elsewhere)
    fault = proxy.add(Fault("flip", times=-1, method="GET", path=r"manifest\.json"))
    with pytest.raises(ManifestError, match="damaged manifest"):
        load_manifest(store, FINGERPRINT)
    assert fault.met == TRIES


@pytest.mark.s3
def test_what_stays_missing_is_missing(store: ObjectStore, proxy: FaultProxy):
    assert load_manifest(store, FINGERPRINT) is None
    assert len(proxy.requests) == 1
    proxy.requests.clear()
    assert load_manifest(store, FINGERPRINT, expected=True) is None
    assert len(proxy.requests) == TRIES


@pytest.mark.s3
@pytest.mark.parametrize("fault", [*map(Fault, DAMAGED), stale("stage_1")], ids=lambda f: f.kind)
def test_a_pointer(fault: Fault, store: ObjectStore, proxy: FaultProxy):
    pointer = StagePointer(expected=FINGERPRINT, fingerprint=FINGERPRINT, columns=(("a", "int"),))
    write_pointer(store, "run", 1, pointer)
    met = proxy.add(replace(fault, method="GET", path="stage_1"))
    assert read_pointer(store, "run", 1) == pointer
    assert met.met


@pytest.mark.s3
@pytest.mark.parametrize("fault", [*map(Fault, DAMAGED), stale("snapshot")], ids=lambda f: f.kind)
def test_a_snapshot(fault: Fault, store: ObjectStore, proxy: FaultProxy, tmp_path: Path):
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "t.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t.parquet}}")
    catalog = load_catalog(tmp_path / "catalog.yaml")
    after = 0 if fault.kind != "status" else 1  # the run looks for one first
    met = proxy.add(replace(fault, method="GET", path="snapshot", after=after))
    taken = load_or_take(store, "run", catalog, ["t"])
    proxy.add(replace(fault, method="GET", path="snapshot", times=1))
    assert load_or_take(store, "run", catalog, ["t"]) == taken
    assert met.met


@pytest.mark.s3
def test_an_object_of_ours_that_is_not_seen_yet(store: ObjectStore, proxy: FaultProxy):
    store.write_bytes("a", b"1")
    proxy.add(stale("/a"))
    assert store.read_bytes("a") == b"1"
    proxy.add(stale("/a"))
    assert store.exists("a")
    with store.open_output("b") as sink:
        sink.write(b"22")
    proxy.add(stale("/b"))
    assert store.size("b") == 2
    assert store.put_if_absent("c", b"333")
    proxy.add(stale("/c"))
    assert store.read_bytes("c", 1, 1) == b"3"


@pytest.mark.s3
def test_an_object_of_ours_that_is_gone(
    store: ObjectStore, elsewhere: ObjectStore, proxy: FaultProxy
):
    store.write_bytes("a", b"1")
    store.delete(["a"])
    proxy.requests.clear()
    with pytest.raises(ObjectMissingError):
        store.read_bytes("a")
    assert len(proxy.requests) == 1
    store.write_bytes("b", b"1")
    elsewhere.delete(["b"])
    proxy.requests.clear()
    for _ in range(2):  # it is waited for once
        with pytest.raises(ObjectMissingError):
            store.read_bytes("b")
    assert len(proxy.requests) == TRIES + 1


class Counted:
    """Reads that fail so many times."""

    def __init__(self, failures: int) -> None:
        self.calls = 0
        self._failures = failures

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise ValueError("damaged")
        return "whole"


def test_a_local_disk_is_asked_once(tmp_path: Path):
    read = Counted(1)
    with pytest.raises(ValueError, match="damaged"):
        reread(open_store(tmp_path), "k", read, (ValueError,))
    assert read.calls == 1


def test_only_what_may_pass_is_tried_again():
    read = Counted(1)
    with pytest.raises(ValueError, match="damaged"):
        reread(open_store("memory://x"), "k", read, (KeyError,))
    assert read.calls == 1


def test_no_longer_than_other_requests():
    read = Counted(1)
    with pytest.raises(ValueError, match="damaged"):
        reread(open_store("memory://x", {"retry_seconds": 0}), "k", read, (ValueError,))
    assert read.calls == 1
    assert reread(open_store("memory://x"), "k", Counted(TRIES - 1), (ValueError,)) == "whole"


def test_only_recent_writes_are_remembered(monkeypatch: pytest.MonkeyPatch):
    writes = RecentWrites()
    now = time.monotonic()
    monkeypatch.setattr(rereads, "_MOST_RECENT", 2)

    def calls(path: str) -> int:
        read = Counted(TRIES)
        with pytest.raises(ValueError, match="damaged"):
            writes.read(path, read, ValueError, 60, lambda: path)
        return read.calls

    for path in "abc":
        writes.add(path)
    assert (calls("a"), calls("b")) == (1, TRIES)
    monkeypatch.setattr(time, "monotonic", lambda: now + 120)
    assert calls("c") == 1


# ---------------------------------------------------------------- text with a checksum


@pytest.mark.parametrize("values", [{"a": 1}, {"a": "ä}\\"}, {"a": {"checksum": 1}, "b": []}])
def test_checked_json(values: dict[str, Any]):
    text = checked_json.dump(values)
    assert checked_json.load(text) == values
    assert json.loads(text).keys() == {*values, "checksum"}


def test_json_of_earlier_versions_is_taken_as_it_is():
    assert checked_json.load(b'{"a": 1}') == {"a": 1}


def test_no_flipped_bit_of_a_snapshot_or_a_pointer_is_silent(tmp_path: Path):
    """Each is refused, or lies in the checksum's own name, so that nothing else has changed."""
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "t.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t.parquet}}")
    store = open_store(tmp_path / "store", {"fsync": "never"})
    catalog = load_catalog(tmp_path / "catalog.yaml")
    snapshot = load_or_take(store, "run", catalog, ["t"])
    pointer = StagePointer(expected=FINGERPRINT, fingerprint="b" * 64, columns=(("a", "int"),))
    write_pointer(store, "run", 1, pointer)
    for key, read, expected in (
        (layout.run_snapshot("run"), lambda: load_or_take(store, "run", catalog, ["t"]), snapshot),
        (layout.run_stage("run", "stage_1"), lambda: read_pointer(store, "run", 1), pointer),
    ):
        whole = store.read_bytes(key)
        for position in range(len(whole)):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << (position % 8)
            store.write_bytes(key, bytes(damaged))
            try:
                found = read()
            except CatalogError:
                continue
            assert found is None or found == expected, (key, position)
