"""Snapshots: decided once a run, exact as JSON, and a changed file is noticed; also on S3."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.errors import InputLostError, StorageError
from stagecoach.infra.formats.snapshot import (
    Snapshot,
    TableSnapshot,
    load_or_take,
    take_snapshot,
)
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.input_files import check_file
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.file_identity import local_version
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.storage.table_files import list_files
from stagecoach.planner.errors import CatalogError
from tests.s3_server import S3Server, s3_server

__all__ = ["s3_server"]


def write(path: Path, values: list[int]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": values, "s": [{"a,b": "<"}] * len(values)}), path)
    return path


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    write(tmp_path / "t" / "b.parquet", [1, 2, 3])
    write(tmp_path / "t" / "a.parquet", [4])
    write(tmp_path / "u" / "a.parquet", [5])
    path = tmp_path / "catalog.yaml"
    path.write_text("tables: {T: {location: t}, db.u: {location: u}}")
    return load_catalog(path)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "root")


def test_snapshot_lists_the_files_in_order(catalog: FileCatalog, tmp_path: Path):
    snapshot = take_snapshot(catalog, ["t", "T", "DB.U"])
    assert sorted(snapshot.tables) == ["T", "db.u"]
    table = snapshot.table("t")
    assert [os.path.basename(file.uri) for file in table.files] == ["a.parquet", "b.parquet"]
    assert (table.num_rows, table.native_reason) == (4, None)
    file = table.files[1]
    status = (tmp_path / "t" / "b.parquet").stat()
    assert (file.num_bytes, file.version) == (status.st_size, local_version(status))
    assert (file.num_rows, file.row_groups, len(file.footer_checksum)) == (3, (3,), 32)
    assert table.num_bytes == sum(f.num_bytes for f in table.files)


def test_json_is_exact_and_stable(catalog: FileCatalog):
    snapshot = take_snapshot(catalog, ["t", "db.u"])
    text = snapshot.to_json()
    assert Snapshot.from_json(text) == snapshot
    assert Snapshot.from_json(text).to_json() == text
    assert take_snapshot(catalog, ["db.u", "t"]).to_json() == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"format_version": 2, "tables": {"t": {}}}', "damaged"),
        ('{"format_version": 2, "tables": []}', "damaged"),
        ('{"format_version": 99}', "format version 99, this Stagecoach reads 4"),
    ],
)
def test_damaged_snapshots_are_errors(text: str, message: str):
    with pytest.raises(CatalogError, match=rf"{message}.*start a new run"):
        Snapshot.from_json(text.encode())


def test_tables_that_are_unknown(catalog: FileCatalog):
    with pytest.raises(CatalogError, match=r"table 'db.v' not found; did you mean 'db.u'"):
        take_snapshot(catalog, ["db.v"])
    with pytest.raises(
        CatalogError, match=r"'db.u' is not in the snapshot of this run \(it has: T"
    ):
        take_snapshot(catalog, ["t"]).table("db.u")


def test_whoever_comes_first_decides(catalog: FileCatalog, store: ObjectStore, tmp_path: Path):
    first = load_or_take(store, "run1", catalog, ["t", "db.u"])
    write(tmp_path / "t" / "c.parquet", [9])
    assert load_or_take(store, "run1", catalog, ["t"]) == first
    assert len(load_or_take(store, "run2", catalog, ["t"]).table("t").files) == 3


def test_a_run_s_snapshot_must_hold_all_its_tables(catalog: FileCatalog, store: ObjectStore):
    load_or_take(store, "run1", catalog, ["t"])
    with pytest.raises(CatalogError, match=r"'db.u' is not in the snapshot of this run"):
        load_or_take(store, "run1", catalog, ["t", "db.u"])


def test_the_loser_of_a_race_reads_the_winner_s(catalog: FileCatalog, store: ObjectStore):
    winner = Snapshot({"T": TableSnapshot(table="T", columns=(), files=(identity("/elsewhere"),))})

    class Racing:
        """Another process writes its snapshot while this one looks at the files."""

        def state(self, name: str):
            store.put_if_absent(layout.run_snapshot("run1"), winner.to_json())
            return catalog.state(name)

    assert load_or_take(store, "run1", Racing(), ["t"]) == winner


class Remote(LocalStore):
    """A store as if it were far away, which notes what is read."""

    is_local = False

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.read: list[str] = []
        self.has_answered = threading.Event()

    def read_bytes(self, key: str, offset: int | None = None, length: int | None = None) -> bytes:
        self.read.append(key)
        try:
            return super().read_bytes(key, offset, length)
        finally:
            self.has_answered.set()


def test_a_process_that_is_alone_reads_nothing_back(catalog: FileCatalog, tmp_path: Path):
    store, key = Remote(str(tmp_path / "root")), layout.run_snapshot("run1")
    taken = load_or_take(store, "run1", catalog, ["t"], alone=True)
    assert store.read == [key]
    assert Snapshot.from_json(store.read_bytes(key)) == taken
    write(tmp_path / "t" / "c.parquet", [9])
    assert load_or_take(store, "run1", catalog, ["t"], alone=True) == taken
    load_or_take(store, "run2", catalog, ["t"])
    assert store.read.count(layout.run_snapshot("run2")) == 2


def test_a_process_that_is_alone_hears_of_tables_that_are_gone(
    catalog: FileCatalog, tmp_path: Path
):
    store = Remote(str(tmp_path / "root"))
    with pytest.raises(CatalogError, match=r"table .db\.v. not found"):
        load_or_take(store, "run1", catalog, ["db.v"], alone=True)
    taken = load_or_take(store, "run1", catalog, ["t"], alone=True)
    for path in (tmp_path / "t").iterdir():
        path.unlink()
    assert load_or_take(store, "run1", catalog, ["t"], alone=True) == taken


def test_a_process_that_is_not_alone_after_all_reads_the_winner_s(
    catalog: FileCatalog, tmp_path: Path
):
    store = Remote(str(tmp_path / "root"))
    winner = Snapshot({"T": TableSnapshot(table="T", columns=(), files=(identity("/elsewhere"),))})

    class Racing:
        def state(self, name: str):
            assert store.has_answered.wait(10), "that there is none"
            LocalStore.put_if_absent(store, layout.run_snapshot("run1"), winner.to_json())
            return catalog.state(name)

    assert load_or_take(store, "run1", Racing(), ["t"], alone=True) == winner


def test_a_damaged_snapshot_is_not_replaced(catalog: FileCatalog, store: ObjectStore):
    store.write_bytes(layout.run_snapshot("run1"), b"{")
    with pytest.raises(CatalogError, match="damaged"):
        load_or_take(store, "run1", catalog, ["t"])


def identity(uri: str) -> DataFile:
    return DataFile(
        uri=uri, num_bytes=1, version="1", num_rows=1, row_groups=(1,), footer_checksum="0" * 32
    )


def rows_of_file(file: DataFile) -> DataFile:
    return DataFile(file.uri, file.num_rows, num_bytes=file.num_bytes, version=file.version)


def test_a_file_that_changed_is_noticed(catalog: FileCatalog, tmp_path: Path):
    file = take_snapshot(catalog, ["t"]).table("t").files[0]
    there = rows_of_file(file)
    check_file(there)
    status = os.stat(file.uri)
    os.utime(file.uri, ns=(0, status.st_mtime_ns + 1))
    changed = r"a\.parquet of the run's snapshot .* it has changed since \(.*\); start a new run"
    with pytest.raises(InputLostError, match=changed):
        check_file(there)
    write(Path(file.uri), [1, 2, 3, 4, 5, 6, 7])
    other_size = rf"a\.parquet of .* it has \d+ bytes instead of {file.num_bytes}; start a new run"
    with pytest.raises(InputLostError, match=other_size):
        check_file(there)
    Path(file.uri).unlink()
    with pytest.raises(InputLostError, match=r"a\.parquet.*there is no such file"):
        check_file(there)
    with pytest.raises(InputLostError, match="there is no such file"):
        check_file(rows_of_file(identity(f"{tmp_path}/catalog.yaml/x")))


def parquet(values: list[int]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": values, "s": [{"a,b": "<"}] * len(values)}), sink)
    return sink.getvalue().to_pybytes()


def upload(server: S3Server, uri: str, data: bytes) -> None:
    folder, name = uri.rsplit("/", 1)
    open_store(folder, server.options).write_bytes(name, data)


def s3_catalog(server: S3Server, tmp_path: Path, location: str) -> FileCatalog:
    path = tmp_path / "s3.yaml"
    path.write_text(f"tables: {{t: {{location: '{location}'}}}}")
    return load_catalog(path, server.options)


@pytest.mark.s3
@pytest.mark.parametrize("pattern", ["{}/t", "{}/t/", "{}/t/*.parquet", "{}/t*"])
def test_s3_tables(s3_server: S3Server, tmp_path: Path, pattern: str):
    root = s3_server.new_root()
    for name in ("b.parquet", "a.parquet", "_SUCCESS", ".x.parquet"):
        upload(s3_server, f"{root}/t/{name}", parquet([1, 2]))
    snapshot = take_snapshot(s3_catalog(s3_server, tmp_path, pattern.format(root)), ["t"])
    files = snapshot.table("t").files
    assert [file.uri for file in files] == [f"{root}/t/a.parquet", f"{root}/t/b.parquet"]
    assert all(file.version and '"' not in file.version for file in files)
    assert snapshot.table("t").num_rows == 4
    check_file(rows_of_file(files[0]), s3_server.options)


@pytest.mark.s3
def test_s3_single_file_and_changes(s3_server: S3Server, tmp_path: Path):
    uri = f"{s3_server.new_root()}/t/a.parquet"
    upload(s3_server, uri, parquet([1, 2]))
    file = take_snapshot(s3_catalog(s3_server, tmp_path, uri), ["t"]).table("t").files[0]
    assert file.uri == uri
    upload(s3_server, uri, parquet([1, 3, 5]))
    with pytest.raises(InputLostError, match=r"a\.parquet .*bytes instead of"):
        check_file(rows_of_file(file), s3_server.options)
    folder, name = uri.rsplit("/", 1)
    open_store(folder, s3_server.options).delete([name])
    with pytest.raises(InputLostError, match=r"a\.parquet .*there is no such file"):
        check_file(rows_of_file(file), s3_server.options)


@pytest.mark.s3
def test_s3_locations_that_are_no_table(s3_server: S3Server, tmp_path: Path):
    root = s3_server.new_root()
    upload(s3_server, f"{root}/hive/day=1/a.parquet", parquet([1]))
    upload(s3_server, f"{root}/bad/a.parquet", b"")
    for location, message in [
        ("none", r"table 't': s3://.*/none (does not exist|has no data file)"),
        ("none/*", r"has no data file"),
        ("hive/*", r"matches the partition folder 'day=1'"),
        ("bad", r"s3://.*/bad/a\.parquet: the file is empty"),
    ]:
        with pytest.raises(CatalogError, match=message):
            s3_catalog(s3_server, tmp_path, f"{root}/{location}").table("t")


@pytest.mark.s3
def test_s3_partition_folders(s3_server: S3Server, tmp_path: Path):
    root = s3_server.new_root()
    upload(s3_server, f"{root}/hive/day=1/hour=2/a.parquet", parquet([1]))
    upload(s3_server, f"{root}/hive/day=2/hour=__HIVE_DEFAULT_PARTITION__/a.parquet", parquet([1]))
    catalog = s3_catalog(s3_server, tmp_path, f"{root}/hive")
    table = catalog.table("t")
    assert table is not None
    assert [(f.name, str(f.dtype)) for f in table.columns[-2:]] == [("day", "int"), ("hour", "int")]
    files = take_snapshot(catalog, ["t"]).table("t").files
    assert [f.partition for f in files] == [("1", "2"), ("2", None)]


@pytest.mark.s3
def test_s3_footers_larger_than_one_read(s3_server: S3Server, tmp_path: Path):
    root = s3_server.new_root()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({f"column_number_{n}": [n] for n in range(1500)}), sink)
    upload(s3_server, f"{root}/t/a.parquet", sink.getvalue().to_pybytes())
    table = s3_catalog(s3_server, tmp_path, f"{root}/t").table("t")
    assert table is not None and len(table.columns) == 1500


@pytest.mark.s3
def test_s3_refusals_name_the_location_and_no_secret(s3_server: S3Server):
    options = StorageOptions(
        endpoint_url=s3_server.endpoint_url, access_key="wrongkey1", secret_key="wrongsecret1"
    )
    with pytest.raises(StorageError, match=r"cannot list s3://.*/t: .*correct the") as caught:
        list_files(f"{s3_server.new_root()}/t", options)
    assert "wrongsecret1" not in str(caught.value) and "wrongkey1" not in str(caught.value)
