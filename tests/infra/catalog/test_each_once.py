"""Values that are made once for each key."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from stagecoach.infra.catalog.each_once import EachOnce


def test_a_value_is_made_once_and_holds_up_no_other() -> None:
    known: EachOnce[object] = EachOnce()
    asked, answer = threading.Event(), threading.Event()
    made: list[str] = []

    def slow() -> object:
        made.append("slow")
        asked.set()
        assert answer.wait(60)
        return object()

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(known.get, "slow", slow)
        assert asked.wait(60)
        second = pool.submit(known.get, "slow", slow)
        assert known.get("fast", lambda: "fast") == "fast"
        assert not first.done()
        answer.set()
        assert first.result() is second.result()
    assert made == ["slow"]


def test_errors_are_not_kept_and_all_is_forgotten() -> None:
    known: EachOnce[int] = EachOnce()

    def fail() -> int:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        known.get("a", fail)
    assert known.get("a", lambda: 1) == 1
    assert known.get("a", lambda: 2) == 1
    known.clear()
    assert known.get("a", lambda: 2) == 2
