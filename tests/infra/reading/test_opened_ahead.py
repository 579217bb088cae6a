"""Files are opened before their turn, given in their order, and none stays open."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from stagecoach.infra.reading.opened_ahead import OpenedFile, opened_ahead


class Opener:
    """Opens files, none of which is read.

    Args:
        refused: The one that cannot be opened.
    """

    def __init__(self, refused: int = -1) -> None:
        self.refused = refused
        self.opened: list[int] = []
        self.open: set[int] = set()
        self.lock = threading.Lock()

    def __call__(self, file: int) -> OpenedFile[int]:
        if file == self.refused:
            raise FileNotFoundError(file)
        stack = ExitStack()
        with self.lock:
            self.opened.append(file)
            self.open.add(file)
        stack.callback(self.open.discard, file)
        return OpenedFile(file, stack)


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_files_come_in_their_order(count: int) -> None:
    opener = Opener()
    found = []
    for one in opened_ahead(range(count), opener):
        with one.closing:
            found.append(one.rows)
    assert found == list(range(count))
    assert not opener.open


def test_the_next_files_are_open_while_one_is_read() -> None:
    second = threading.Event()

    def open_one(file: int) -> OpenedFile[int]:
        if file == 1:
            second.set()
        return Opener()(file)

    files = opened_ahead(range(2), open_one)
    with next(files).closing:
        assert second.wait(20)
    for one in files:
        one.closing.close()


def test_an_error_is_raised_when_the_turn_of_its_file_comes() -> None:
    opener = Opener(refused=2)
    files = opened_ahead(range(9), opener)
    for _ in range(2):
        next(files).closing.close()
    with pytest.raises(FileNotFoundError):
        next(files)
    assert not opener.open


def test_whoever_stops_leaves_no_file_open() -> None:
    opener = Opener()
    files = opened_ahead(range(30), opener)
    with next(files).closing:
        files.close()
    assert not opener.open
    assert len(opener.opened) < 30
