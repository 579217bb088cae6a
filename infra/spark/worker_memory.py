"""Environment variables that bound the memory which Python workers keep.

What a task frees, it or the next task takes again a moment later. An allocator that gives it back
to the system in between pays a page fault for each 4 kB: a tenth of the time of a shuffle write,
and more on a virtual machine. What a worker keeps is what it had at its peak, which is bounded.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

WORKER_MEMORY = {
    # Arrow's allocator: never give pages back.
    "MIMALLOC_PURGE_DELAY": "-1",
    # The C library's: arrays of less than 32 MB, the most it takes, come from the heap.
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}
"""Variables of a worker's environment; allocators read them when a process begins."""


def keep_worker_memory(environment: MutableMapping[str, str]) -> None:
    """Set them in the environment of processes that start workers, but for those that are there."""
    for name, value in WORKER_MEMORY.items():
        environment.setdefault(name, value)


def executor_conf() -> dict[str, str]:
    """Spark's configuration that sets them on its executors, as here where they are set here."""
    return {
        f"spark.executorEnv.{name}": os.environ.get(name, value)
        for name, value in WORKER_MEMORY.items()
    }
