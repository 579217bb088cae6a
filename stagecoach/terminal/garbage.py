"""Keeps Python's garbage collector from costing a command a tenth of a second, or a whole one.

Importing makes hundreds of thousands of objects, none of them garbage, and the collector looks at
all of them again and again; at the end of the process it does so once more.
"""

from __future__ import annotations

import gc
import sys

_YOUNG = 100_000  # objects that make it look at the new ones; Python's own number is 700


def collect_rarely() -> None:
    """Look for garbage less often from now on."""
    _, *older = gc.get_threshold()
    gc.set_threshold(_YOUNG, *older)


def leave_to_the_system() -> None:
    """Let the collector ignore all that is here: the process ends, and its memory with it.

    DuckDB's module looks for what is left of it when it is unloaded, and reports it.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()
