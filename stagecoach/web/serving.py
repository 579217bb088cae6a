"""Serving an application in a thread of this process, behind the `Guard`.

uvicorn and starlette come with Dagster's webserver, which has the same server.
"""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import uvicorn

from stagecoach.web.guard import Guard
from stagecoach.web.policy import WebPolicy

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class BackgroundServer:
    """A server that accepts connections as soon as it is made, until it is closed.

    Args:
        app: The application.
        policy: Which requests reach it.
        host: Address to listen on.
        port: Port; 0 for any that is free.

    Raises:
        OSError: The address cannot be used.
    """

    def __init__(self, app: ASGIApp, policy: WebPolicy, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        self.port = int(listening.getsockname()[1])
        self._server = uvicorn.Server(
            uvicorn.Config(
                Guard(app, policy),
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name=f"web-{self.port}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Finish the requests that are being answered, and stop."""
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self) -> BackgroundServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
