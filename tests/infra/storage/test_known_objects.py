"""Objects that are at hand, and requests that do not wait for each other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.at_once import at_once, both
from stagecoach.infra.storage.known_objects import KnownObjects
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.stores import open_store


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    found = open_store(tmp_path)
    assert isinstance(found, LocalStore)
    found.write_bytes("stored", b"in the store")
    return found


class FarStore:
    """A store that counts as remote."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    is_local = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("offset", [None, 0, 3, 20])
@pytest.mark.parametrize("length", [None, 0, 4, 20])
def test_known_objects_are_read_as_stored_ones(
    offset: int | None, length: int | None, store: LocalStore
) -> None:
    known = KnownObjects(store, {"known": b"in the store", "stored": b"in the store"})
    expected = store.read_bytes("stored", offset, length)
    assert known.read_bytes("known", offset, length) == expected
    assert known.read_bytes("stored", offset, length) == expected


def test_everything_else_is_asked_of_the_store(store: LocalStore) -> None:
    known = KnownObjects(store, {"known": b"only here"})
    assert isinstance(known, ObjectStore)
    assert known.read_bytes("stored") == b"in the store"
    assert not known.exists("known")
    with pytest.raises(ObjectMissingError):
        known.size("known")
    with pytest.raises(ObjectMissingError):
        known.read_bytes("missing")
    assert known.put_if_absent("new", b"written")
    assert not known.put_if_absent("new", b"again")
    assert store.read_bytes("new") == b"written"
    with known.open_output("streamed") as sink:
        sink.write(b"rows")
    assert known.open_input("streamed").read() == b"rows"
    assert sorted(known.list("")) == ["new", "stored", "streamed"]
    known.delete(["new", "streamed"])
    assert sorted(store.list("")) == ["stored"]
    assert known.to_dict() == store.to_dict()
    assert known.uri("stored") == store.uri("stored")
    assert known.folders("") == store.folders("")
    assert known.is_local


def test_requests_are_made_at_once_where_the_store_is_far_away(store: LocalStore) -> None:
    barrier = threading.Barrier(3)

    def ask(number: int) -> int:
        barrier.wait(20)  # none of them gets past it alone
        return number

    assert at_once(FarStore(store), [lambda n=n: ask(n) for n in range(3)]) == [0, 1, 2]
    assert both(FarStore(store), lambda: 1, lambda: "a") == (1, "a")


def test_requests_to_a_local_store_need_no_thread(store: LocalStore) -> None:
    names = at_once(store, [lambda: threading.current_thread().name] * 3)
    assert set(names) == {threading.current_thread().name}


@pytest.mark.parametrize("far", [False, True])
def test_the_error_of_a_request_is_raised_as_it_is(far: bool, store: LocalStore) -> None:
    def fail() -> int:
        raise StorageError("no permission")

    asked = FarStore(store) if far else store
    with pytest.raises(StorageError, match="no permission"):
        at_once(asked, [lambda: 1, fail])
