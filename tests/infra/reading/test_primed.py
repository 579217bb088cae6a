"""The first item is asked for before its turn; all come in their order, and errors when due."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from stagecoach.infra.reading.primed import primed


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_all_items_come_in_their_order(count: int) -> None:
    assert list(primed(iter(range(count)))) == list(range(count))


def test_the_first_item_is_asked_for_at_once_and_no_other() -> None:
    asked = threading.Event()
    given: list[int] = []

    def items() -> Iterator[int]:
        for number in range(3):
            given.append(number)
            asked.set()
            yield number

    found = primed(items())
    assert asked.wait(20)
    assert given == [0]
    assert next(found) == 0
    assert list(found) == [1, 2]


def test_an_error_is_raised_when_its_turn_comes() -> None:
    def items() -> Iterator[int]:
        raise FileNotFoundError("gone")
        yield 0

    found = primed(items())
    with pytest.raises(FileNotFoundError, match="gone"):
        next(found)
