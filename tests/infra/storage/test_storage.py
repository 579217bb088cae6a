"""The contract of `ObjectStore`, for a local folder, memory, and a real server of S3."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.published import paths
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store, store_from_dict
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server, s3_server

__all__ = ["s3_server"]


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    if request.param == "local":
        yield open_store(tmp_path / "root")
    elif request.param == "memory":
        yield open_store(f"memory://{tmp_path.name}/root")
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        yield open_store(server.new_root(), server.options)


def test_write_and_read_whole_and_ranges(store: ObjectStore) -> None:
    store.write_bytes("a/b.bin", b"0123456789")
    assert store.read_bytes("a/b.bin") == b"0123456789"
    assert store.read_bytes("a/b.bin", 3, 4) == b"3456"
    assert store.read_bytes("a/b.bin", 8, 100) == b"89"
    assert store.read_bytes("a/b.bin", 7) == b"789"
    assert store.size("a/b.bin") == 10
    store.write_bytes("a/b.bin", b"new")
    assert store.read_bytes("a/b.bin") == b"new"


def test_open_input_is_random_access(store: ObjectStore) -> None:
    store.write_bytes("x.bin", b"0123456789")
    with store.open_input("x.bin") as file:
        file.seek(4)
        assert file.read(3) == b"456"
        assert file.size() == 10


def test_empty_object(store: ObjectStore) -> None:
    store.write_bytes("empty", b"")
    assert store.exists("empty")
    assert store.size("empty") == 0
    assert store.read_bytes("empty") == b""
    assert store.open_input("empty").read() == b""


def test_missing_object_is_its_own_error(store: ObjectStore) -> None:
    for call in (
        lambda: store.read_bytes("no/such"),
        lambda: store.read_bytes("no/such", 0, 5),
        lambda: store.size("no/such"),
        lambda: store.open_input("no/such").read(1),
    ):
        with pytest.raises(ObjectMissingError, match=r"no/such.*does not exist"):
            call()
    assert not store.exists("no/such")


def test_put_if_absent_keeps_the_first(store: ObjectStore) -> None:
    assert store.put_if_absent("m/manifest.json", b"first")
    assert not store.put_if_absent("m/manifest.json", b"second")
    assert store.read_bytes("m/manifest.json") == b"first"


def test_output_is_visible_only_after_success(store: ObjectStore) -> None:
    with store.open_output("o/file") as sink:
        sink.write(b"abc")
        sink.write(pa.py_buffer(b"def"))
        assert not store.exists("o/file")
    assert store.read_bytes("o/file") == b"abcdef"


@pytest.mark.parametrize("size", [3, 40 << 20])
def test_failed_output_leaves_nothing(store: ObjectStore, size: int) -> None:
    with pytest.raises(RuntimeError, match=r"stop"), store.open_output("o/file") as sink:
        for _ in range(2):
            sink.write(bytes(size))
        raise RuntimeError("stop")
    assert not store.exists("o/file")
    assert list(store.list("o")) == []


def test_large_output_goes_in_parts(store: ObjectStore) -> None:
    piece = os.urandom(1 << 20)
    with store.open_output("o/large") as sink:
        for _ in range(37):
            sink.write(piece)
    assert store.size("o/large") == 37 << 20
    assert store.read_bytes("o/large", (36 << 20) + 5, 100) == piece[5:105]


def test_list_and_delete(store: ObjectStore) -> None:
    for key in ("p/b", "p/a/x", "q/c"):
        store.write_bytes(key, b"1")
    assert list(store.list("p")) == ["p/a/x", "p/b"]
    assert list(store.list("")) == ["p/a/x", "p/b", "q/c"]
    assert list(store.list("none")) == []
    store.delete(["p/b", "p/gone"])
    store.delete([])
    assert list(store.list("p")) == ["p/a/x"]


def test_rebuilt_from_plain_data_and_pickle(store: ObjectStore) -> None:
    store.write_bytes("k", b"v")
    assert store_from_dict(store.to_dict()).read_bytes("k") == b"v"
    assert pickle.loads(pickle.dumps(store)).read_bytes("k") == b"v"


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\0b"])
def test_keys_cannot_escape(store: ObjectStore, key: str) -> None:
    with pytest.raises(StorageError, match=r"not a relative path below the root"):
        store.read_bytes(key)
    with pytest.raises(StorageError, match=r"not a relative path below the root"):
        store.write_bytes(key, b"")


def test_put_if_absent_race_has_one_winner(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for attempt in range(20):
        barrier = threading.Barrier(4)
        wins: list[int] = []

        def race(number: int, key: str, barrier: threading.Barrier, wins: list[int]) -> None:
            barrier.wait()
            if store.put_if_absent(key, str(number).encode()):
                wins.append(number)

        arguments = (f"m{attempt}", barrier, wins)
        threads = [threading.Thread(target=race, args=(n, *arguments)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wins) == 1
        assert store.read_bytes(f"m{attempt}") == str(wins[0]).encode()
    assert not [key for key in store.list("") if ".tmp-" in key]


def test_a_folder_that_goes_while_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where gc in another process removes one that it has left empty."""
    make, met = os.mkdir, list[object]()

    def there_and_gone(path: str, *args: int) -> None:
        if not met:
            met.append(path)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        make(path, *args)

    store = open_store(tmp_path)
    monkeypatch.setattr(os, "mkdir", there_and_gone)
    store.write_bytes("folder/k", b"v")
    assert met == [tmp_path / "folder"]
    assert store.read_bytes("folder/k") == b"v"


def test_local_input_is_a_memory_map(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    store.write_bytes("f", b"0123456789")
    assert isinstance(store.open_input("f"), pa.MemoryMappedFile)


def test_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StorageError, match=r"cannot write .*f1.*no space left on the device"):
        store.write_bytes("f1", b"x")
    assert list(store.list("")) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_really_full_device_is_named() -> None:
    from stagecoach.infra.storage.local_store import _Sink

    with (
        open("/dev/full", "wb", buffering=0) as device,
        pytest.raises(StorageError, match=r"no space left on the device; free some"),
    ):
        _Sink(device, "/data/f").write(b"x")


def test_unwritable_root_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match=r"cannot write .*file/k"):
        open_store(tmp_path / "file").write_bytes("k", b"x")
    # Not even root may create a folder here.
    with pytest.raises(StorageError, match=r"cannot write /proc/"):
        open_store("/proc/stagecoach").write_bytes("k", b"x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_permission_denied_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match=r"permission denied"):
        open_store(tmp_path).write_bytes("k", b"x")


def test_unknown_scheme_and_option() -> None:
    with pytest.raises(StorageError, match=r"no file system for scheme 'nope'"):
        open_store("nope://bucket")
    with pytest.raises(StorageError, match=r"unknown storage option 'endpoint'"):
        open_store("memory://x", {"endpoint": "y"})
    with pytest.raises(StorageError, match=r"root is empty"):
        open_store("")


def test_secrets_are_never_shown() -> None:
    options = StorageOptions(
        endpoint_url="http://127.0.0.1:1", access_key="AKIDX", secret_key="topsecret"
    )
    store = open_store("s3://user:hunter2@bucket/root", options)
    shown = repr(store) + repr(options) + str(store.uri("k"))
    for secret in ("AKIDX", "topsecret", "hunter2"):
        assert secret not in shown
    assert options.redact("key AKIDX at s3://u:p@h") == "key *** at s3://***@h"


@pytest.mark.s3
def test_s3_from_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    store = open_store(s3_server.new_root())
    store.write_bytes("k", b"v")
    assert store.read_bytes("k") == b"v"
    assert store.to_dict()["options"] == {}


@pytest.mark.s3
def test_s3_refused_credentials_name_the_object_not_the_secret(s3_server: S3Server) -> None:
    options = StorageOptions(
        endpoint_url=s3_server.endpoint_url, access_key="wrong1", secret_key="wrongsecret1"
    )
    store = open_store(s3_server.new_root(), options)
    with pytest.raises(StorageError, match=r"cannot write s3://.*/k") as caught:
        store.write_bytes("k", b"v")
    for secret in (ACCESS_KEY, SECRET_KEY, "wrong1", "wrongsecret1"):
        assert secret not in str(caught.value)


def test_layout_paths() -> None:
    fingerprint = "ab" * 32
    prefix = layout.shuffle_prefix(fingerprint)
    assert prefix.startswith("shuffle/")
    assert prefix.endswith(f"/{fingerprint}")
    assert len(prefix.split("/")[1]) == 2
    assert layout.map_file(fingerprint, 3, 1) == f"{prefix}/00003-1.arrow"
    assert layout.parse_map_file(layout.map_file(fingerprint, 3, "0_ab")) == (3, "0_ab")
    assert layout.manifest(fingerprint) == f"{prefix}/manifest.json"
    assert layout.run_snapshot("run-1") == "runs/run-1/snapshot.json"
    assert layout.run_stage("run-1", "stage_2") == "runs/run-1/stages/stage_2.json"
    assert layout.analysis("ab" * 8) == f"analysis/{'ab' * 8}.json"
    assert layout.new_attempt(2) != layout.new_attempt(2)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\\b", "a\n", ".hidden", "a" * 201, "é"])
def test_layout_refuses_names_that_could_escape(name: str) -> None:
    for build in (layout.run_snapshot, paths.table_prefix, layout.run_prefix):
        with pytest.raises(StorageError, match=r"cannot be part of a storage path"):
            build(name)
    for build in (layout.shuffle_prefix, layout.analysis):
        with pytest.raises(StorageError, match=r"hex digits"):
            build(name)
    with pytest.raises(StorageError, match=r"cannot name a map file"):
        layout.map_file("ab" * 8, 0, name)
