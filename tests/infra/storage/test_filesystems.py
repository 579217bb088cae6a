"""Any fsspec URL: what opens, what is refused and how, and what a lost connection does."""

from __future__ import annotations

import http.server
import importlib
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectMissingError, StorageOptions
from stagecoach.infra.storage.stores import open_store
from tests.fault_proxy import Fault, FaultProxy

QUICK = {"retry_seconds": 0.5, "timeout_seconds": 5.0}


class Vault(MemoryFileSystem):
    """A file system that needs a host and a token."""

    protocol = "vault"
    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, host: str, token: str, port: int = 1, timeout: float = 0, **_: Any) -> None:
        super().__init__(skip_instance_cache=True)
        self.made.append({"host": host, "token": token, "port": port, "timeout": timeout})

    @staticmethod
    def _get_kwargs_from_urls(url: str) -> dict[str, Any]:
        place = url.partition("://")[2].partition("/")[0]
        host, _, port = place.partition(":")
        return ({"host": host} if host else {}) | ({"port": int(port)} if port else {})

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        if "://" in path:
            path = "/" + path.partition("://")[2].partition("/")[2]
        return super()._strip_protocol(path)


class Disk(LocalFileSystem):
    """A file system with folders, which is written by a move."""

    protocol = "disk"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(str(path).removeprefix("disk://"))


@pytest.fixture
def disk(tmp_path: Path) -> FsspecStore:
    fsspec.register_implementation("disk", Disk, clobber=True)
    store = open_store(f"disk://{tmp_path}/root", QUICK)
    assert isinstance(store, FsspecStore)
    return store


@pytest.fixture
def vault() -> Iterator[type[Vault]]:
    fsspec.register_implementation("vault", Vault, clobber=True)
    Vault.made.clear()
    yield Vault
    Vault.clear_instance_cache()


def test_parts_of_the_url_and_options_reach_the_file_system(vault: type[Vault]) -> None:
    options = StorageOptions(timeout_seconds=7, filesystem_options={"token": "topsecret"})
    store = open_store(f"vault://h:9/{uuid.uuid4().hex}", options)
    store.write_bytes("a/k", b"v")
    assert store.read_bytes("a/k") == b"v"
    assert vault.made[-1] == {"host": "h", "token": "topsecret", "port": 9, "timeout": 7}
    assert list(store.list("")) == ["a/k"]
    assert "topsecret" not in repr(options) + options.redact("it was topsecret")
    assert StorageOptions.from_dict(options.to_dict()) == options


def test_fsspecs_own_configuration_counts(
    vault: type[Vault], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fsspec.config.conf, "vault", {"token": "configured"})
    open_store(f"vault://h/{uuid.uuid4().hex}").write_bytes("k", b"v")
    assert vault.made[-1]["token"] == "configured"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "vault://h/x",
            r"vault://h/x: its file system says: missing a required argument: 'token'; name it",
        ),
        ("vault://h:9x/x", r"is not what a URL of its kind looks like"),
        ("github://", r"a required argument: 'org'; name it in the URL or .*filesystem_options"),
        ("ftp://h/x", r"cannot open ftp://h/x: FTP is not supported.*use sftp://"),
        ("gopher://h/x", r"no file system for scheme 'gopher'"),
        ("s3://", r"s3:// names no bucket; give s3://<bucket>/<prefix>"),
        ("s3a:///x", r"s3a:///x names no bucket"),
        ("simplecache::s3://bucket/x", r"chained URLs are not supported.*give the inner URL"),
        ("dir::memory://x", r"chained URLs are not supported"),
        ("simplecache::/tmp/x", r"chained URLs are not supported"),
        ("zip://x::file:///tmp/x.zip", r"chained URLs are not supported"),
    ],
)
def test_what_cannot_be_opened_says_why(vault: type[Vault], url: str, message: str) -> None:
    with pytest.raises(StorageRefusedError, match=message) as error:
        open_store(url)
    assert not error.value.retryable


@pytest.mark.parametrize(
    ("scheme", "package"),
    [("abfs", "adlfs"), ("gs", "gcsfs"), ("sftp", "paramiko"), ("webdav", "webdav4")],
)
def test_a_missing_driver_is_named(
    scheme: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(name: str) -> None:
        raise ImportError(name)

    registry = importlib.import_module("fsspec.registry")  # the attribute is another thing
    monkeypatch.delitem(registry._registry, scheme, raising=False)
    monkeypatch.setattr(registry, "_import_class", not_installed)
    with pytest.raises(
        StorageRefusedError, match=rf"driver of {scheme}:// is not installed \(.*{package}"
    ):
        open_store(f"{scheme}://host/x")


def test_a_file_system_that_cannot_start_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", "/nonexistent")
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    with pytest.raises(StorageError, match=r"^cannot write hdfs://host/x/k: OSError: [^\n]+$"):
        open_store("hdfs://host/x").write_bytes("k", b"v")


@pytest.mark.parametrize("scheme", ["", "file://", "local://"])
def test_local_folders_by_any_name(scheme: str, tmp_path: Path) -> None:
    store = open_store(f"{scheme}{tmp_path}/a::b")
    assert isinstance(store, LocalStore)
    store.write_bytes("k", b"v")
    assert (tmp_path / "a::b" / "k").read_bytes() == b"v"


def test_a_root_without_a_path() -> None:
    store = open_store("memory://")
    key = f"{uuid.uuid4().hex}/a"
    store.write_bytes(key, b"v")
    assert store.read_bytes(key) == b"v"
    assert key in store.list("")
    assert store.uri(key) == f"memory:///{key}"


def test_folders_are_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://{uuid.uuid4().hex}")
    assert isinstance(store, FsspecStore)
    store.write_bytes("a/k", b"v")
    find = MemoryFileSystem.find

    def with_folders(self: MemoryFileSystem, path: str, **arguments: Any) -> Any:
        return find(self, path, withdirs=True, **arguments)

    monkeypatch.setattr(MemoryFileSystem, "find", with_folders)
    assert "directory" in {
        item["type"] for item in store.filesystem.find("/", detail=True).values()
    }
    assert [key for key, _ in store.list_details("")] == ["a/k"]


def test_a_folder_that_cannot_be_listed_is_an_error(
    disk: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = disk
    store.write_bytes("a/k", b"v")
    cls = type(store.filesystem)
    ls = cls.ls

    def refusing(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.endswith("/a"):
            raise PermissionError(path)
        return ls(self, path, *args, **kwargs)

    monkeypatch.setattr(cls, "ls", refusing)
    with pytest.raises(StorageError, match=r"cannot list disk://.*: permission denied"):
        list(store.list(""))


def test_threads_have_connections_of_their_own(vault: type[Vault]) -> None:
    options = StorageOptions(filesystem_options={"token": "t"})
    store = open_store(f"vault://h/{uuid.uuid4().hex}", options)

    def write_and_read(number: int) -> bool:
        content = bytes([number]) * 5000
        store.write_bytes(f"{number % 3}/{number}", content)
        return store.read_bytes(f"{number % 3}/{number}", 1, 4000) == content[1:4001]

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(write_and_read, range(24)))
    assert len(list(store.list(""))) == 24
    assert 1 < len(vault.made) <= 7


def test_a_move_whose_answer_is_lost_is_no_failure(
    disk: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = disk
    cls = type(store.filesystem)
    move = cls.mv
    lost = [True]

    def answer_is_lost(self: Any, *paths: str) -> None:
        move(self, *paths)
        if lost:
            lost.clear()
            raise ConnectionResetError

    monkeypatch.setattr(cls, "mv", answer_is_lost)
    store.write_bytes("k", b"v")
    assert not lost
    assert list(store.list("")) == ["k"]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[FaultProxy]:
    (tmp_path / "k").write_bytes(b"v")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        with FaultProxy(f"http://127.0.0.1:{server.server_address[1]}").running() as proxy:
            yield proxy
        server.shutdown()
        thread.join()


def test_an_overloaded_web_server_is_asked_again(web: FaultProxy) -> None:
    store = open_store(web.url)
    faults = [web.add(Fault("status", status=status)) for status in (503, 429, 500)]
    faults.append(web.add(Fault("reset")))
    assert store.read_bytes("k") == b"v"
    assert [fault.met for fault in faults] == [1, 1, 1, 1]
    with pytest.raises(ObjectMissingError):
        store.read_bytes("none")
    refused = web.add(Fault("status", status=403, times=-1))
    with pytest.raises(StorageRefusedError, match=r"access denied"):
        store.read_bytes("k")
    assert refused.met == 1


def test_a_file_system_that_cannot_write_says_so(web: FaultProxy) -> None:
    with (
        pytest.raises(StorageRefusedError, match=r"cannot write http://.*file system cannot do"),
        open_store(web.url).open_output("new") as sink,
    ):
        sink.write(b"v")
