"""Run a job of a module in a process that measures itself.

Peak memory is that of a whole process, so each job has one of its own, with a worker's environment.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from stagecoach.infra.spark.worker_memory import keep_worker_memory


def run_measured(module: str, job: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Run `python -m MODULE --job JSON`, whose last line of output is JSON, too.

    Args:
        module: A benchmark.
        job: What it is to do.
        what: What that is, for the error.

    Raises:
        click.ClickException: It failed.
    """
    environment = dict(os.environ)
    keep_worker_memory(environment)
    command = [sys.executable, "-m", module, "--job", json.dumps(job)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise click.ClickException(f"{what} failed:\n{done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak_bytes() -> int:
    """Highest resident memory of this process, not of what it was started from."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
