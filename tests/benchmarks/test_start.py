"""The benchmark of starts counts all that a command starts, and compares with plain Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.start import Taken, summary

# The command ends at once; what it has started works on for half a second of the processor.
_PROGRAM = """
import os, sys
from pathlib import Path
from benchmarks.start import Contender, adopt_orphans, measure

work = "import time\\nwhile time.process_time() < 0.5: pass"
left = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {work!r}]); print(42)"
adopt_orphans()
command = (sys.executable, "-c", left)
taken = measure(Contender(name="c", command=command, environment=os.environ), Path.cwd())
assert taken.answer == "42"
assert taken.cpu > 0.5, taken
"""


def test_processor_time_of_what_outlives_the_command_counts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_medians_and_ratios() -> None:
    runs = {
        "cold": [Taken(3.0, 9.0, "1"), Taken(1.0, 1.0, "1"), Taken(2.0, 2.0, "1")],
        "plain Spark": [Taken(4.0, 8.0, "1")],
    }
    found = summary(runs)
    assert found["cold"] == {
        "wall_seconds": 2.0,
        "least_wall_seconds": 1.0,
        "cpu_seconds": 2.0,
        "wall_ratio": pytest.approx(0.5),
        "cpu_ratio": pytest.approx(0.25),
    }
    assert found["plain Spark"]["wall_ratio"] == 1.0
