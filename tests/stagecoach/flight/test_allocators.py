"""The allocator of a server, in a process of its own: its settings are the whole process's."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
from stagecoach.flight.allocators import give_back_memory, keep_freed_memory

def faults(rounds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        bytearray(b"x") * (8 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

plain = faults(20)
assert keep_freed_memory()
faults(1)
kept = faults(20)
blocks = [bytearray(b"x") * (8 << 20) for _ in range(8)]
del blocks
held = resident()
give_back_memory()
print(plain, kept, held - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_blocks_are_kept_and_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120
    )
    plain, kept, given = map(int, done.stdout.split())
    assert kept < plain / 10
    assert given > 32 << 20
