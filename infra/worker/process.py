"""What a Python worker of Spark does once in its life.

Worker code.
"""

from __future__ import annotations

import functools
import gc


@functools.cache
def settle() -> None:
    """Have the garbage collector leave out what is there after the first task: modules, mostly.

    Spark has a worker collect all garbage after each task. That took 15 ms for 60,000 objects which
    stay as long as the worker does, while the next task waited for it.
    """
    gc.collect()
    gc.freeze()
