"""The one handler of this process that writes our log lines to standard error.

It is known by its class: whoever adds one to the root logger looks for others of it there, so a
line is never written twice, by the command line and by a code location that it loads.
"""

from __future__ import annotations

import logging
import sys


class StderrHandler(logging.Handler):
    """Writes to whatever `sys.stderr` is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        sys.stderr.write(self.format(record) + "\n")


def root_handlers() -> list[StderrHandler]:
    """Those that the root logger has; at most one where each is added by this rule."""
    return [h for h in logging.getLogger().handlers if isinstance(h, StderrHandler)]
