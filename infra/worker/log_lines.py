"""What a task logs, kept for its report.

Worker code: the lines of the thread that runs the task travel to the driver with its report.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MAX_TASK_LINES = 100
"""Lines that a task's report carries; the last ones count."""

MAX_LINE = 2_000
"""Characters of a line; what is longer is cut."""

_OURS = ("stagecoach.infra", "stagecoach.planner")


@contextmanager
def captured_lines() -> Iterator[deque[str]]:
    """Collect what our packages log in this thread while the block runs, the last lines of it."""
    lines: deque[str] = deque(maxlen=MAX_TASK_LINES)
    handler = _Lines(lines, threading.get_ident())
    loggers = [logging.getLogger(name) for name in _OURS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield lines
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def error_lines(error: BaseException) -> list[str]:
    """The traceback of an error as log lines."""
    text = "".join(traceback.format_exception(error))
    return [line[:MAX_LINE] for line in text.splitlines()]


class _Lines(logging.Handler):
    """Formats the records of one thread into a bounded list."""

    def __init__(self, lines: deque[str], thread: int) -> None:
        super().__init__()
        self._lines = lines
        self._thread = thread
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self._lines.extend(line[:MAX_LINE] for line in self.format(record).splitlines())
