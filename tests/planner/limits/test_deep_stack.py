"""A function that needs a large stack gets one; others run as they are."""

from __future__ import annotations

import contextvars
import copy
import json
import sys
import threading
from collections.abc import Callable

import pytest

from stagecoach.planner.limits.deep_stack import on_deep_stack, run_deep

name = contextvars.ContextVar("name", default="nobody")


def down(levels: int) -> int:
    return 0 if levels == 0 else 1 + down(levels - 1)


def nested(levels: int) -> list[object]:
    found: list[object] = []
    for _ in range(levels):
        found = [found]
    return found


def test_what_is_flat_runs_in_the_callers_thread() -> None:
    assert run_deep(threading.current_thread) is threading.current_thread()


def test_what_is_deep_runs_on_a_large_stack_and_leaves_the_limit_as_it_was() -> None:
    before = sys.getrecursionlimit(), threading.stack_size()
    assert run_deep(lambda: down(50_000)) == 50_000
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


@pytest.mark.parametrize(
    "work",
    [
        lambda: json.dumps(nested(20_000)),
        lambda: repr(nested(20_000)),
        lambda: copy.deepcopy(nested(9_000)),
        lambda: hash(tuple(map(str, (nested(20_000),)))),
        lambda: nested(20_000) == nested(20_000),
    ],
    ids=["json", "repr", "deepcopy", "str", "equality"],
)
def test_calls_through_c_find_room_too(work: Callable[[], object]) -> None:
    with pytest.raises(RecursionError):
        work()
    try:
        run_deep(work)
    except RecursionError:
        # Python 3.12 has a limit of its own for calls through C, which cannot be raised.
        assert sys.version_info >= (3, 12)


def test_without_end_it_is_an_error_without_its_frames() -> None:
    def endless() -> int:
        return 1 + endless()

    with pytest.raises(RecursionError) as caught:
        run_deep(endless)
    assert len(caught.traceback) < 20


def test_errors_and_context_pass_through() -> None:
    def deep() -> str:
        down(5_000)
        return name.get()

    def failing() -> None:
        down(5_000)
        raise KeyError("k")

    token = name.set("somebody")
    try:
        assert run_deep(deep) == "somebody"
    finally:
        name.reset(token)
    with pytest.raises(KeyError, match="k"):
        run_deep(failing)


def test_a_call_inside_of_one_stays_in_its_thread() -> None:
    threads: set[threading.Thread] = set()

    @on_deep_stack
    def deep(again: int) -> int:
        down(5_000)
        threads.add(threading.current_thread())
        return deep(again - 1) if again else down(5_000)

    assert deep(3) == 5_000
    assert len(threads) == 1


def test_calls_of_many_threads_share_the_raised_limit() -> None:
    before = sys.getrecursionlimit()
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(run_deep(lambda: down(20_000))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [20_000] * 8
    assert sys.getrecursionlimit() == before


def test_a_call_within_a_call_may_need_a_large_stack() -> None:
    def outer() -> int:
        return run_deep(lambda: down(20_000)) + 1  # the outer call itself is shallow

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(run_deep(outer))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [20_001] * 8


def test_without_memory_for_a_large_stack_it_is_a_smaller_one_or_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    largest = 100 << 20
    start = threading.Thread.start

    def limited(self: threading.Thread) -> None:
        if threading.stack_size() > largest:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    before = sys.getrecursionlimit(), threading.stack_size()
    assert run_deep(lambda: down(5_000)) == 5_000
    largest = 0
    with pytest.raises(RecursionError, match="no memory for a large stack"):
        run_deep(lambda: down(5_000))
    assert (sys.getrecursionlimit(), threading.stack_size()) == before
