"""Starts the process that commands are forked from beside a warm Spark, as a child of its watcher.

The process itself is `stagecoach.command_host`, of a higher layer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from stagecoach.infra.host.process_folders import ProcessFolder
from stagecoach.infra.host.processes import die_with_parent

_MODULE = "stagecoach.command_host"
_POLL_SECONDS = 0.05
_START_SECONDS = 60.0


class CommandHost:
    """The command host of a server, from its start to its end.

    Args:
        environment: Variables of the process that has started the server.
        python_path: Its `PYTHONPATH`, which the server's watcher does not have.
    """

    def __init__(self, environment: Mapping[str, str], python_path: str) -> None:
        # Not in the cache folder: the path of a socket is at most 107 bytes long.
        self._folder = ProcessFolder(tempfile.gettempdir(), "host")
        self.path = os.path.join(self._folder.path, "host.sock")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, self.path, python_path],
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def is_up(self) -> bool:
        """Wait until it listens, or has ended or not come up in time; return whether it listens."""
        deadline = time.monotonic() + _START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if os.path.exists(self.path):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def end(self) -> None:
        """End it; commands that it has forked go on."""
        self._process.kill()
        self._process.wait()
        self._folder.close()
