"""Starts processes beside the UI that end with it.

A process that is started so gets the number of the one that started it as its last argument, and
looks from time to time whether that is still its parent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

_POLL_SECONDS = 1.0


def launch(
    module: str,
    *arguments: str,
    log: Path,
    environment: Mapping[str, str] | None = None,
    in_terminal: bool = False,
) -> None:
    """Start `python -m MODULE ARGUMENT… PARENT` in the background and return at once.

    Args:
        module: One of ours, which is found whatever the working folder is.
        arguments: What it is told before the number of this process.
        log: What the process has to say; its folder is made.
        environment: The variables that it gets; those of this process if left out.
        in_terminal: Whether Ctrl-C in the terminal reaches it and it may print there.
    """
    given = os.environ if environment is None else environment
    paths = [str(Path(__file__).resolve().parents[2]), given.get("PYTHONPATH", "")]
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=None if in_terminal else output,
            stderr=output,
            env={**given, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            start_new_session=not in_terminal,
        )
    process.returncode = 0  # it outlives this object on purpose: no warning about that


def await_end_of(parent: int) -> None:
    """Wait until the process that started this one has ended."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
