"""Health, readiness and metrics of a server, by HTTP beside its port of gRPC.

    GET /healthz    200 while the process answers
    GET /readyz     200 while it takes new statements, else 503
    GET /metrics    Prometheus's text format

It tells nothing of statements, tables or users, so nobody has to log in.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = 10.0


class HealthServer:
    """Answers from when it is made until it is closed.

    Args:
        host: Address to listen on.
        port: Port; 0 for any that is free.
        is_ready: Whether new statements are taken.
        metrics: Gives all metrics as text.

    Raises:
        OSError: The address cannot be used.
    """

    def __init__(
        self, host: str, port: int, is_ready: Callable[[], bool], metrics: Callable[[], bytes]
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            """Answers one request."""

            timeout = _SECONDS  # of a client that sends nothing

            def do_GET(self) -> None:  # the library's name
                """Answer a GET request."""
                match self.path.partition("?")[0]:
                    case "/healthz":
                        self._answer(200, b"ok\n")
                    case "/readyz" if is_ready():
                        self._answer(200, b"ready\n")
                    case "/readyz":
                        self._answer(503, b"shutting down\n")
                    case "/metrics":
                        self._answer(200, metrics(), _METRICS)
                    case _:
                        self._answer(404, b"not found\n")

            def _answer(self, status: int, body: bytes, kind: str = _TEXT) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: a probe asks every few seconds."""

        class Server(ThreadingHTTPServer):
            """Has a thread for each request."""

            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, port), Handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, name=f"health-{self.port}", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
