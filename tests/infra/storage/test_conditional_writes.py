"""put-if-absent on a server that honours conditional writes and on one that ignores them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from stagecoach.infra.runtime.stages.claims import Claim
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from tests.fault_proxy import Fault, FaultProxy
from tests.moto_server import BUCKET, moto_options
from tests.s3_server import S3Server, s3_server
from tests.stage_outputs import commit_files, write_map_file

__all__ = ["moto_options", "s3_server"]

pytestmark = pytest.mark.s3

FINGERPRINT = "cd" * 32
SCHEMA = pa.schema([pa.field("a", pa.int64())])


@pytest.fixture(params=["honoured", "ignored"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "honoured":
        options: StorageOptions = request.getfixturevalue("moto_options")
        return open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}", options)
    server: S3Server = request.getfixturevalue("s3_server")
    return open_store(server.new_root(), server.options)


def at_once(count: int, call: Callable[..., object]) -> list[object]:
    barrier = threading.Barrier(count)
    found: list[object] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        found[number] = call(number)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_the_servers_are_what_they_are_taken_for(
    moto_options: StorageOptions, s3_server: S3Server
) -> None:
    honours = open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}", moto_options)
    ignores = open_store(s3_server.new_root(), s3_server.options)
    for one, refused in ((honours, True), (ignores, False)):
        assert isinstance(one, FsspecStore)
        one.write_bytes("k", b"first")
        path = one._path("k")
        if refused:
            with pytest.raises(OSError, match=r"(?i)condition"):
                one.filesystem.pipe_file(path, b"second", mode="create")
        else:
            one.filesystem.pipe_file(path, b"second", mode="create")
        assert one.read_bytes("k") == (b"first" if refused else b"second")


def test_race_of_writers(store: ObjectStore, request: pytest.FixtureRequest) -> None:
    honoured = "honoured" in request.node.name
    for round_number in range(4):
        key = f"m{round_number}"
        won = at_once(4, lambda n, key=key: store.put_if_absent(key, f"writer {n}".encode()))
        if honoured:
            assert won.count(True) == 1
            assert store.read_bytes(key) == f"writer {won.index(True)}".encode()
        else:  # the last one wins, and whoever was told so is among those that may have
            winner = int(store.read_bytes(key).split()[1])
            assert won[winner]


def commit(store: ObjectStore, number: int) -> Manifest:
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2, 3])], schema=SCHEMA)
    attempt = layout.new_attempt(number)
    file = write_map_file(store, FINGERPRINT, [rows], SCHEMA, attempt=attempt)
    return commit_files(store, FINGERPRINT, [file], SCHEMA, created_at=f"writer {number}")


def test_race_of_commits(store: ObjectStore, request: pytest.FixtureRequest) -> None:
    found = at_once(4, lambda n: commit(store, n))
    manifest = load_manifest(store, FINGERPRINT)
    assert manifest is not None
    assert read_table(store, manifest).num_rows == 3
    for one in found:
        assert isinstance(one, Manifest)
        assert read_table(store, one).num_rows == 3, "also a commit that was replaced is whole"
    if "honoured" in request.node.name:
        assert {one.manifest_hash for one in found if isinstance(one, Manifest)} == {
            manifest.manifest_hash
        }


@pytest.fixture
def unsure(moto_options: StorageOptions) -> Iterator[tuple[ObjectStore, FaultProxy]]:
    """A store whose first conditional write is done, but its answer lost."""
    with FaultProxy(str(moto_options.endpoint_url)).running() as proxy:
        options = replace(moto_options, endpoint_url=proxy.url, retry_seconds=10)
        yield open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}", options), proxy


def test_a_write_whose_answer_is_lost_is_ours(unsure: tuple[ObjectStore, FaultProxy]) -> None:
    store, proxy = unsure
    fault = proxy.add(Fault("reset_after", method="PUT"))
    assert store.put_if_absent("k", b"mine"), "the second request is refused because of the first"
    assert fault.met == 1
    assert not store.put_if_absent("k", b"another's")
    assert store.read_bytes("k") == b"mine"


def test_a_claim_whose_answer_is_lost_is_held(unsure: tuple[ObjectStore, FaultProxy]) -> None:
    store, proxy = unsure
    fault = proxy.add(Fault("reset_after", method="PUT"))
    claim = Claim(store, FINGERPRINT, "we", 60.0)
    assert claim.take()
    assert fault.met == 1
    claim.release()
    assert not store.exists(layout.claim(FINGERPRINT))


def test_a_write_asks_once_whether_the_object_is_there(
    unsure: tuple[ObjectStore, FaultProxy],
) -> None:
    """Each request is a round trip that the commit of a stage waits for."""
    store, proxy = unsure
    assert store.put_if_absent("k", b"mine")
    assert [method for method, _ in proxy.requests] == ["HEAD", "PUT"]
    assert store.exists("k")
    assert not store.exists("k/below")
    assert [method for method, _ in proxy.requests[2:]] == ["HEAD", "HEAD"]
