"""The process that serves `/metrics` beside the UI, and ends with it: in, a folder and an address.

    python -m stagecoach.metrics_server FOLDER HOST PORT PARENT

Runs are processes that soon end, and the UI becomes Dagster's process, so neither can serve.
"""

from __future__ import annotations

import sys
from pathlib import Path

from infra.metrics import FOLDER_VARIABLE, MetricsServer
from stagecoach import side_process

_LOG = "server.log"


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
    side_process.launch(
        "stagecoach.metrics_server", str(values), host, str(port), log=folder / _LOG
    )
    return {FOLDER_VARIABLE: str(values)}


def main(folder: str, host: str, port: str, parent: str) -> None:
    """Serve until the process that started this one has ended."""
    server = MetricsServer(Path(folder))
    server.serve(host, int(port))
    side_process.await_end_of(int(parent))


if __name__ == "__main__":
    main(*sys.argv[1:])
