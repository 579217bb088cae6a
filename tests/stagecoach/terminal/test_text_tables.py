"""How wide tables may be."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from stagecoach.terminal.text_tables import terminal_width


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal that is not descriptor 1, as after `divert_noise`."""
    main, side = pty.openpty()
    with os.fdopen(side, "w") as stream:
        yield stream
    os.close(main)


def resize(terminal: TextIO, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))


def test_the_width_is_that_of_the_terminal_written_to(
    terminal: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    resize(terminal, 173)
    assert terminal_width() == 173
    resize(terminal, 0)  # a terminal that does not tell
    assert terminal_width() == 80
    monkeypatch.setenv("COLUMNS", "211")
    assert terminal_width() == 211
    monkeypatch.setenv("COLUMNS", "wide")
    assert terminal_width() == 80


def test_what_is_no_terminal_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "211")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal_width() is None
