"""Holds of results: marks in storage that begin once and end once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from stagecoach.flight.holds import Holds
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store


def marks(store: ObjectStore, run: str) -> tuple[int, int]:
    """How many readers have begun in a run, and how many have ended."""
    begun, ended = (list(store.list(f"runs/{run}/{what}")) for what in ("begun", "ended"))
    return len(begun), len(ended)


def test_a_result_is_held_while_its_tickets_are_valid_or_somebody_reads(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    holds = Holds(store)
    holds.keep("a", 100.0)
    holds.keep("a", 50.0)
    with holds.reading("a"):
        holds.sweep(now=101.0)
        assert marks(store, "a") == (1, 0)
    holds.sweep(now=99.0)
    assert (marks(store, "a"), len(holds)) == ((1, 0), 1)
    holds.sweep(now=101.0)
    assert (marks(store, "a"), len(holds)) == ((1, 1), 0)
    # Another time it is another reader.
    holds.keep("a", 200.0)
    holds.release("a")
    assert marks(store, "a") == (2, 2)


def test_who_comes_while_a_hold_begins_waits_and_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    holds = Holds(store)
    begins, go_on, calls = threading.Event(), threading.Event(), []

    def slow(store: ObjectStore, run: str, reader: str, *, is_hosted: bool) -> None:
        calls.append(run)
        if run == "slow":
            begins.set()
            assert go_on.wait(30)

    monkeypatch.setattr("stagecoach.flight.holds.mark_begun", slow)
    threads = [threading.Thread(target=holds.keep, args=("slow", 100.0)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begins.wait(30)
    holds.keep("other", 100.0)
    assert all(thread.is_alive() for thread in threads)
    go_on.set()
    for thread in threads:
        thread.join()
    assert sorted(calls) == ["other", "slow"]


def refuse(*_: object, **__: object) -> None:
    raise StorageError("no space")


def test_a_hold_that_cannot_begin_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    holds = Holds(store)

    with monkeypatch.context() as patch:
        patch.setattr("stagecoach.flight.holds.mark_begun", refuse)
        with pytest.raises(StorageError):
            holds.keep("a", 100.0)
        with pytest.raises(StorageError):
            holds.open_stream("a")
    assert marks(store, "a") == (0, 0)
    holds.keep("a", 100.0)
    assert marks(store, "a") == (1, 0)
    holds.sweep(now=101.0)  # the stream that was not opened is not waited for
    assert (marks(store, "a"), len(holds)) == ((1, 1), 0)


def test_a_hold_that_never_began_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    holds = Holds(store)

    monkeypatch.setattr("stagecoach.flight.holds.mark_begun", refuse)
    with pytest.raises(StorageError):
        holds.keep("a", 100.0)
    holds.sweep(now=101.0)
    assert (marks(store, "a"), len(holds)) == ((0, 0), 0)
