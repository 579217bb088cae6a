"""The process that serves Prometheus metrics beside the UI, and ends with it.

    python -m stagecoach.host.metrics_server FOLDER HOST PORT PARENT

Runs are processes that soon end, and the UI becomes Dagster's process, so neither can serve. The
policy of the UI holds here, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.host import side_process
from stagecoach.infra.telemetry.metrics import FOLDER_VARIABLE, MetricsFolder
from stagecoach.web.policy import WebPolicy, take_policy
from stagecoach.web.serving import BackgroundServer

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_LOG = "server.log"


def launch(folder: Path, host: str, port: int, policy: WebPolicy) -> Mapping[str, str]:
    """Start the server in the background and return at once; it ends with this process.

    Args:
        folder: Where runs keep their values, and the server its log; what is there is forgotten.
        host: Address to listen on.
        port: Port, which is free.
        policy: Which requests it answers.

    Returns:
        What the environment of runs must have, so that they count.
    """
    values = folder / "values"
    MetricsFolder(values).clear()
    side_process.launch(
        "stagecoach.host.metrics_server",
        str(values),
        host,
        str(port),
        log=folder / _LOG,
        environment={**os.environ, **policy.to_environment()},
    )
    return {FOLDER_VARIABLE: str(values)}


def metrics_app(folder: MetricsFolder) -> ASGIApp:
    """The application that serves the sums of a folder, at `/metrics` and any other path."""
    from prometheus_client import CollectorRegistry, make_asgi_app

    registry = CollectorRegistry()
    registry.register(folder)
    app: ASGIApp = make_asgi_app(registry)
    return app


def main(folder: str, host: str, port: str, parent: str) -> None:
    """Serve until the process that started this one has ended."""
    policy = take_policy(os.environ)
    with BackgroundServer(metrics_app(MetricsFolder(Path(folder))), policy, host, int(port)):
        side_process.await_end_of(int(parent))


if __name__ == "__main__":
    main(*sys.argv[1:])
