"""S3 behind a network that fails: what passes is tried again, within a bound; the rest fails at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.footers import read_footer
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.storage.table_files import list_files
from stagecoach.planner.types import BIGINT
from tests.fault_proxy import Fault, FaultProxy, Kind
from tests.s3_server import S3Server, s3_server
from tests.waiting import wait_for

__all__ = ["s3_server"]

pytestmark = pytest.mark.s3

# Faults that pass, each met by the first try of whatever request is next.
PASSING = {
    "500": Fault("status", status=500),
    "503": Fault("status", status=503),
    "429": Fault("status", status=429),
    "502 for longer": Fault("status", status=502, times=4),
    "late": Fault("late", seconds=60),
    "reset": Fault("reset"),
    "reset after": Fault("reset_after"),
    "noise": Fault("noise"),
    "cut": Fault("cut"),
    "short": Fault("short"),
    "slow": Fault("slow", seconds=30),
    # Bytes keep coming, so that no wait for the next ones is long.
    "trickle": Fault("slow", seconds=30, pieces=300),
}


@pytest.fixture(scope="module")
def network(s3_server: S3Server) -> Iterator[FaultProxy]:
    """One address for all tests: a client of S3 takes long to make."""
    with FaultProxy(s3_server.endpoint_url).running() as running:
        yield running


@pytest.fixture
def proxy(network: FaultProxy) -> Iterator[FaultProxy]:
    yield network
    network.clear()


@pytest.fixture
def options(proxy: FaultProxy, s3_server: S3Server) -> StorageOptions:
    """Patient ones: where requests are counted, a busy machine must not make one more of them."""
    return replace(
        s3_server.options, endpoint_url=proxy.url, timeout_seconds=30.0, retry_seconds=60.0
    )


HASTY = 0.3  # seconds to wait for an answer, where it is late


@pytest.fixture
def root(s3_server: S3Server) -> str:
    return s3_server.new_root()


@pytest.fixture
def store(root: str, options: StorageOptions) -> ObjectStore:
    return open_store(root, options)


CONTENT = bytes(range(256)) * 40


def actions(store: ObjectStore) -> dict[str, tuple[str, Callable[[], object], object]]:
    """Everything that a store does: the requests of it that fail, how, and what must come of it."""

    def upload() -> object:
        with store.open_output("up") as sink:
            sink.write(CONTENT)
        return store.read_bytes("up")

    def put() -> object:
        store.delete(["absent"])
        return store.put_if_absent("absent", b"mine"), store.read_bytes("absent")

    def seek() -> object:
        with store.open_input("k") as file:
            file.seek(300)
            return file.read(700)

    def delete() -> object:
        store.write_bytes("gone", b"x")
        store.delete(["gone", "never-there"])
        return store.exists("gone")

    return {
        "read": ("GET", lambda: store.read_bytes("k"), CONTENT),
        "read a range": ("GET", lambda: store.read_bytes("k", 100, 1000), CONTENT[100:1100]),
        "read at random": ("GET", seek, CONTENT[300:1000]),
        "size": ("HEAD", lambda: store.size("k"), len(CONTENT)),
        "write": ("PUT", lambda: store.write_bytes("w", CONTENT), None),
        "upload": ("PUT", upload, CONTENT),
        "put if absent": ("PUT", put, (True, b"mine")),
        "list": ("GET", lambda: list(store.list("folder")), ["folder/a", "folder/b"]),
        "delete": ("POST", delete, False),
    }


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("503", "reset after", "cut", "trickle")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in PASSING
    ],
)
def test_what_passes_is_tried_again(
    name: str, root: str, options: StorageOptions, proxy: FaultProxy
) -> None:
    if PASSING[name].kind in ("late", "slow"):
        options = replace(options, timeout_seconds=HASTY)
    store = open_store(root, options)
    store.write_bytes("k", CONTENT)
    for key in ("folder/a", "folder/b"):
        store.write_bytes(key, b"1")
    for action, (method, call, expected) in actions(store).items():
        # An answer without a body, or one that S3 itself describes, cannot be half there unseen.
        # That it comes slowly can be seen.
        seen = ("read", "list") if name == "trickle" else ("read",)
        if PASSING[name].kind in ("cut", "short", "slow") and not action.startswith(seen):
            continue
        if PASSING[name].kind == "short" and action == "read":
            continue  # nothing says how long it should be: the checksums of our formats do
        if PASSING[name].times > 1 and action not in ("read", "upload"):
            continue
        fault = proxy.add(replace(PASSING[name], method=method))
        started = time.monotonic()
        assert call() == expected, action
        assert time.monotonic() - started < 25, action  # the shortest of the long faults is 30 s
        assert fault.met == PASSING[name].times, action
        proxy.clear()
    assert store.read_bytes("k") == CONTENT


def test_a_body_that_is_slow_but_comes_is_read_in_one_request(
    root: str, options: StorageOptions, store: ObjectStore, proxy: FaultProxy
) -> None:
    content = CONTENT * 200  # 2 MB
    store.write_bytes("k", content)
    store = open_store(root, replace(options, timeout_seconds=2.0))
    proxy.add(Fault("slow", times=-1, seconds=2.6))  # longer than one wait, each piece is not
    proxy.requests.clear()
    assert store.read_bytes("k") == content
    assert len(proxy.requests) == 1


def test_parts_of_an_upload_are_tried_again(store: ObjectStore, proxy: FaultProxy) -> None:
    piece = CONTENT * 700  # 7 MB
    faults = [
        proxy.add(Fault("status", method="POST", path="uploads")),
        proxy.add(Fault("reset", method="PUT", path="partNumber=1")),
        proxy.add(Fault("reset_after", method="PUT", path="partNumber=2")),
        # The upload ends, nobody hears of it, and it cannot end again.
        proxy.add(Fault("reset_after", method="POST", path="uploadId")),
    ]
    with store.open_output("large") as sink:
        for _ in range(6):
            sink.write(piece)
    assert [fault.met for fault in faults] == [1, 1, 1, 1]
    assert store.size("large") == 6 * len(piece)
    assert store.read_bytes("large", 5 * len(piece), 1000) == piece[:1000]


@pytest.mark.parametrize("kind", ["status", "late", "reset", "cut", "slow"])
def test_what_never_passes_ends_within_the_bound(
    kind: Kind, root: str, options: StorageOptions, store: ObjectStore, proxy: FaultProxy
) -> None:
    store.write_bytes("k", CONTENT)
    store = open_store(root, replace(options, timeout_seconds=HASTY, retry_seconds=1.0))
    proxy.add(Fault(kind, times=-1, seconds=60))
    started = time.monotonic()
    with pytest.raises(
        StorageError, match=r"cannot read s3://.*/k: .*tried for up to 1 s"
    ) as error:
        store.read_bytes("k")
    assert time.monotonic() - started < 20  # the faults take 60 s
    assert error.value.retryable


REFUSED = {
    "AccessDenied": (Fault("status", status=403, times=-1), r"access denied; grant"),
    "InvalidAccessKeyId": (
        Fault("status", status=403, code="InvalidAccessKeyId", times=-1),
        r"does not know the access key",
    ),
    "SignatureDoesNotMatch": (
        Fault("status", status=403, code="SignatureDoesNotMatch", times=-1),
        r"the secret key is wrong",
    ),
    "ExpiredToken": (Fault("status", status=400, code="ExpiredToken", times=-1), r"has expired"),
    "NoSuchBucket": (
        Fault("status", status=404, code="NoSuchBucket", times=-1),
        r"the bucket does not exist; create it",
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused_fails_at_once(code: str, store: ObjectStore, proxy: FaultProxy) -> None:
    store.write_bytes("k", CONTENT)
    fault, message = REFUSED[code]
    proxy.add(fault)
    for call in (
        lambda: store.read_bytes("k"),
        lambda: store.write_bytes("k", b""),
        lambda: list(store.list("")),
    ):
        before = fault.met
        with pytest.raises(StorageRefusedError, match=message) as error:
            call()
        assert fault.met == before + 1  # one request
        assert not error.value.retryable


def test_bucket_that_is_not_there(s3_server: S3Server) -> None:
    store = open_store("s3://no-such-bucket/root", s3_server.options)
    for call in (
        lambda: store.write_bytes("k", b"x"),
        lambda: store.put_if_absent("k", b"x"),
        lambda: store.read_bytes("k"),
    ):
        with pytest.raises(StorageRefusedError, match=r"the bucket does not exist"):
            call()


def test_host_that_nobody_knows_fails_at_once(s3_server: S3Server) -> None:
    options = replace(s3_server.options, endpoint_url="http://no-such-host.invalid")
    started = time.monotonic()
    with pytest.raises(StorageError, match=r"cannot read s3://b/k"):
        open_store("s3://b", options).read_bytes("k")
    assert time.monotonic() - started < 45  # others are tried for 60 s; a resolver may be slow


def test_missing_credentials_are_named(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
    options = StorageOptions(endpoint_url=s3_server.endpoint_url, region="us-east-1", part_bytes=1)
    with pytest.raises(StorageRefusedError, match=r"no credentials; set AWS_PROFILE"):
        open_store(s3_server.new_root(), options).read_bytes("k")


def test_server_that_comes_back(store: ObjectStore, proxy: FaultProxy) -> None:
    store.write_bytes("k", CONTENT)
    fault = proxy.add(Fault("reset", times=-1))

    def come_back() -> None:
        wait_for(lambda: fault.met > 3, 50)
        proxy.clear()

    thread = threading.Thread(target=come_back)
    thread.start()
    assert store.read_bytes("k") == CONTENT
    thread.join()
    assert fault.met > 3


def test_delete_that_is_refused_for_one_object_is_an_error(store: ObjectStore) -> None:
    assert isinstance(store, FsspecStore)
    answer = {"Errors": [{"Key": "x", "Code": "AccessDenied", "Message": "no"}]}

    def refuse(method: str, **arguments: Any) -> object:
        keys = [item["Key"] for item in arguments["Delete"]["Objects"]]
        return {"Errors": [{**answer["Errors"][0], "Key": keys[1]}]}

    store.filesystem.call_s3 = refuse
    try:
        with pytest.raises(StorageRefusedError, match=r"cannot delete .*/b: access denied"):
            store.delete(["a", "b", "c"])
    finally:
        del store.filesystem.call_s3


def test_a_missing_object_is_no_fault(store: ObjectStore, proxy: FaultProxy) -> None:
    proxy.requests.clear()
    with pytest.raises(ObjectMissingError):
        store.read_bytes("none")
    assert len(proxy.requests) == 1


def test_one_read_is_one_request(store: ObjectStore, proxy: FaultProxy) -> None:
    store.write_bytes("k", CONTENT)
    for call in (lambda: store.read_bytes("k"), lambda: store.read_bytes("k", 5, 50)):
        proxy.requests.clear()
        call()
        assert [method for method, _ in proxy.requests] == ["GET"]


@pytest.mark.parametrize("kind", ["status", "reset", "cut", "short"])
def test_scans_of_parquet(
    kind: Kind, root: str, options: StorageOptions, store: ObjectStore, proxy: FaultProxy
) -> None:
    table = pa.table({"a": pa.array(range(5000), pa.int64()), "b": ["x" * 20] * 5000})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=1000)
    store.write_bytes("t/part.parquet", sink.getvalue().to_pybytes())
    proxy.add(Fault(kind, times=2, method="GET"))
    (entry,) = list_files(f"{root}/t", options)
    if kind != "cut":  # which leaves a listing alone
        proxy.add(Fault(kind, times=1, method="GET", path="parquet"))
    footer = read_footer(entry, options)
    assert footer.num_rows == 5000
    faults = [
        proxy.add(Fault(kind, times=2, method="GET", path="parquet", after=n)) for n in (0, 2)
    ]
    rows = DataFile(
        entry.uri, 5000, num_bytes=entry.num_bytes, version=entry.version, rows=(1500, 4500)
    )
    leaf = ParquetInput((LeafColumn("a", "a", BIGINT),), (rows,), options.to_dict())
    read = pa.Table.from_batches(read_parquet_batches(leaf))
    assert read.column(0).to_pylist() == list(range(1500, 4500))
    assert sum(fault.met for fault in faults) > 1
