"""Ranges of objects come through presigned requests; what these cannot do, botocore's own do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.rclone import RcloneServer
from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.object_store import ObjectChangedError, ObjectStore
from stagecoach.infra.storage.sized_file import read_into
from stagecoach.infra.storage.stores import open_store
from tests.certificates import own_certificate
from tests.fault_proxy import Fault, FaultProxy, Kind
from tests.s3_server import BUCKET, S3Server, s3_server

__all__ = ["s3_server"]

pytestmark = pytest.mark.s3

CONTENT = bytes(range(256)) * 40
PRESIGNED = "X-Amz-Signature="
# Neither what a URL nor what a signature has as it is.
ODD_KEY = "a b/p=1%2F2/ü+&?#=~.bin"


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    """Of each test its own: what a server does not know, a client remembers."""
    with FaultProxy(s3_server.endpoint_url).running() as running:
        yield running


@pytest.fixture
def store(proxy: FaultProxy, s3_server: S3Server) -> ObjectStore:
    options = replace(s3_server.options, endpoint_url=proxy.url, retry_seconds=5.0)
    store = open_store(s3_server.new_root(), options)
    for key in ("k", ODD_KEY):
        store.write_bytes(key, CONTENT)
    proxy.requests.clear()
    return store


@pytest.mark.parametrize("key", ["k", ODD_KEY])
def test_a_range_is_one_presigned_request(store: ObjectStore, proxy: FaultProxy, key: str) -> None:
    assert store.read_bytes(key, 300, 700) == CONTENT[300:1000]
    assert [PRESIGNED in path for _, path in proxy.requests] == [True]


def test_a_body_is_sent_at_once(store: ObjectStore) -> None:
    """Not after the server has said that it may be."""
    assert isinstance(store, FsspecStore)
    sent: list[bool] = []
    events = store.filesystem.s3.meta.events
    events.register("before-send.s3", lambda request, **_: sent.append("Expect" in request.headers))
    store.write_bytes("k2", CONTENT)
    with store.open_output("k3") as sink:
        sink.write(CONTENT)
    assert sent
    assert not any(sent)


@pytest.fixture(scope="module")
def filled(s3_server: S3Server) -> ObjectStore:
    store = open_store(s3_server.new_root(), s3_server.options)
    store.write_bytes("k", CONTENT)
    return store


@given(offset=st.integers(0, len(CONTENT) + 10), length=st.integers(0, len(CONTENT) + 10))
@settings(max_examples=25)
def test_any_range(filled: ObjectStore, offset: int, length: int) -> None:
    assert filled.read_bytes("k", offset, length) == CONTENT[offset : offset + length]


def test_many_threads_read_ranges_of_one_object(filled: ObjectStore) -> None:
    ranges = [(offset * 37 % len(CONTENT), 1 + offset) for offset in range(200)]
    source = filled.open_input("k")
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda one: source.read_at(one[1], one[0]), ranges))
    assert found == [CONTENT[start : start + length] for start, length in ranges]


@given(offset=st.integers(0, len(CONTENT) + 10), length=st.integers(0, len(CONTENT) + 10))
@settings(max_examples=25)
def test_any_range_into_memory(filled: ObjectStore, offset: int, length: int) -> None:
    buffer = bytearray(length)
    count = read_into(filled.open_input("k"), memoryview(buffer), offset)
    assert (count, buffer[:count]) == (
        len(CONTENT[offset : offset + length]),
        CONTENT[offset : offset + length],
    )
    assert not any(buffer[count:])


@pytest.mark.parametrize("kind", ["reset", "cut", "slow", "short", "long"])
def test_memory_is_filled_anew_after_a_failure(
    store: ObjectStore, proxy: FaultProxy, s3_server: S3Server, kind: Kind
) -> None:
    hasty = replace(s3_server.options, endpoint_url=proxy.url, timeout_seconds=0.3)
    root = str(store.uri("k")).removesuffix("/k")
    source = open_store(root, hasty).open_input("k")
    fault = proxy.add(Fault(kind, path=PRESIGNED, seconds=30.0))
    buffer = bytearray(700)
    assert read_into(source, memoryview(buffer), 300) == 700
    assert (buffer, fault.met) == (CONTENT[300:1000], 1)


def test_requests_go_through_the_proxy_of_the_environment(
    s3_server: S3Server, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault proxy cannot answer a request for an absolute address, but it notes it."""
    store = open_store(s3_server.new_root(), s3_server.options)
    store.write_bytes("k", CONTENT)
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    named = replace(s3_server.options, retry_seconds=0.0, timeout_seconds=5.0, region="eu-west-1")
    with suppress(StorageError):
        open_store(str(store.uri("k")).removesuffix("/k"), named).read_bytes("k", 300, 700)
    signed = [path for _, path in proxy.requests if PRESIGNED in path]
    assert signed[0].startswith(s3_server.endpoint_url)


def test_another_object_in_its_place_is_noticed(s3_server: S3Server) -> None:
    store = open_store(s3_server.new_root(), s3_server.options)
    store.write_bytes("k", CONTENT)
    source = store.open_input("k")
    assert source.read_at(10, 5) == CONTENT[5:15]
    store.write_bytes("k", CONTENT[::-1])
    with pytest.raises(ObjectChangedError, match="was replaced by another object"):
        source.read_at(10, 5)


@pytest.mark.parametrize("status", [400, 403])
def test_a_server_without_presigned_urls_is_asked_for_one_once(
    store: ObjectStore, proxy: FaultProxy, status: int
) -> None:
    fault = proxy.add(Fault("status", status=status, path=PRESIGNED, times=-1))
    for _ in range(3):
        assert store.read_bytes("k", 300, 700) == CONTENT[300:1000]
    assert (fault.met, len(proxy.requests)) == (1, 4)


def test_what_is_refused_in_both_ways_is_asked_for_in_both_ways_again(
    store: ObjectStore, proxy: FaultProxy
) -> None:
    proxy.add(Fault("status", status=403, path="k", times=2))
    with pytest.raises(StorageRefusedError):
        store.read_bytes("k", 300, 700)
    assert store.read_bytes("k", 300, 700) == CONTENT[300:1000]
    assert PRESIGNED in proxy.requests[-1][1]


@pytest.mark.parametrize("status", [404, 500, 503])
def test_other_errors_are_botocores(store: ObjectStore, proxy: FaultProxy, status: int) -> None:
    proxy.add(Fault("status", status=status, path=PRESIGNED))
    for _ in range(2):
        assert store.read_bytes("k", 300, 700) == CONTENT[300:1000]
    assert [PRESIGNED in path for _, path in proxy.requests] == [True, False, True]


@pytest.mark.parametrize("kind", ["reset", "noise", "late", "cut"])
def test_an_error_names_the_address_and_no_signature(
    store: ObjectStore, proxy: FaultProxy, s3_server: S3Server, kind: Kind
) -> None:
    hasty = replace(
        s3_server.options, endpoint_url=proxy.url, retry_seconds=0.0, timeout_seconds=0.3
    )
    root = str(store.uri("k")).removesuffix("/k")
    proxy.add(Fault(kind, path=PRESIGNED, times=-1, seconds=2.0))
    with pytest.raises(StorageError) as raised:
        open_store(root, hasty).read_bytes("k", 300, 700)
    error: BaseException | None = raised.value
    while error is not None:
        assert "Signature" not in f"{error!r} {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert f"{root}/k" in str(raised.value)


@pytest.fixture(scope="module")
def secured(
    s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RcloneServer, Path]]:
    """A server with TLS, and its certificate, which is its own authority.

    Where there is no `s3_server`, there is none with TLS.
    """
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "certificate.pem", folder / "key.pem"
    for file, content in zip(files, own_certificate(), strict=True):
        file.write_bytes(content)
    with RcloneServer(folder / "s3", BUCKET, certificate=files) as server:
        yield server, files[0]


@pytest.fixture
def opened_with_tls(
    secured: tuple[RcloneServer, Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], ObjectStore]:
    """Opens a store of the server, whose certificate the environment names for now."""
    server, certificate = secured
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    root = f"s3://{BUCKET}/root"
    open_store(root, server.options()).write_bytes("k", CONTENT)
    return lambda: open_store(root, server.options())


def test_many_connections_with_tls(opened_with_tls: Callable[[], ObjectStore]) -> None:
    store = opened_with_tls()
    source = store.open_input("k")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda start: source.read_at(500, start), range(100)))
    assert found == [CONTENT[start : start + 500] for start in range(100)]
    assert isinstance(store, FsspecStore)
    assert store.filesystem.presigns


def test_a_server_of_an_unknown_authority_is_refused(
    opened_with_tls: Callable[[], ObjectStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened_with_tls().read_bytes("k", 3, 5) == CONTENT[3:8]
    monkeypatch.delenv("AWS_CA_BUNDLE")
    with pytest.raises(StorageError, match="certificate"):
        opened_with_tls().read_bytes("k", 3, 5)
