"""The process that serves `/metrics` beside the UI, and ends with it: in, a folder and an address.

    python -m stagecoach.metrics_server FOLDER HOST PORT PARENT

Runs are processes that soon end, and the UI becomes Dagster's process, so neither can serve.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from infra.metrics import FOLDER_VARIABLE, MetricsServer

_LOG = "server.log"
_POLL_SECONDS = 1.0


def launch(folder: Path, host: str, port: int) -> dict[str, str]:
    """Start the server in the background and return at once; it ends with this process.

    Args:
        folder: Where runs keep their values, and the server its log; what is there is forgotten.
        host: Address to listen on.
        port: Port, which is free.

    Returns:
        What the environment of runs must have, so that they count.
    """
    values = folder / "values"
    MetricsServer(values).clear()
    command = [sys.executable, "-P", "-m", "stagecoach.metrics_server"]
    paths = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    with open(folder / _LOG, "wb") as output:
        server = subprocess.Popen(
            [*command, str(values), host, str(port), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            start_new_session=True,
        )
    server.returncode = 0  # it outlives this object on purpose: no warning about that
    return {FOLDER_VARIABLE: str(values)}


def main(folder: str, host: str, port: str, parent: str) -> None:
    """Serve until the process that started this one has ended."""
    server = MetricsServer(Path(folder))
    server.serve(host, int(port))
    while os.getppid() == int(parent):
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
