"""A proxy in front of a server that behaves like a faulty network.

`FaultProxy` passes HTTP requests on to an S3 server. `add` puts faults in its way, each for some
requests by method and path: what the server says then is counted, so a test can say that its fault
was really met. One thread a connection, standard library only.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal
from urllib.parse import urlsplit

Kind = Literal[
    "status",  # an error instead of an answer
    "late",  # no answer for `seconds`, then the connection ends
    "slow",  # the answer, a few bytes at a time, over `seconds`
    "reset",  # the connection is reset before the server hears of the request
    "reset_after",  # … after the server has done what was asked
    "noise",  # what is no answer of HTTP, such as the rest of an earlier body
    "cut",  # half of the body, then the end of the connection
    "short",  # half of the body, with headers that say so
    "long",  # the body twice, with headers that say so
    "flip",  # one bit of the body is wrong
]
_CODES = {
    500: "InternalError",
    503: "SlowDown",
    403: "AccessDenied",
    404: "NoSuchKey",
    429: "TooManyRequests",
}
_HOP = frozenset(("connection", "transfer-encoding", "keep-alive", "content-length"))


@dataclass
class Fault:
    """What goes wrong with which requests.

    Args:
        kind: What.
        times: For how many requests; -1 for all.
        method: Of which method; "" for any.
        path: A pattern that is searched for in path and query.
        status: Of the kind `status`.
        code: S3's code for it; by default the usual one.
        seconds: Of `late` and `slow`.
        pieces: In how many a `slow` body comes.
        after: Requests that fit and are left alone first.
    """

    kind: Kind
    times: int = 1
    method: str = ""
    path: str = ""
    status: int = 503
    code: str = ""
    seconds: float = 30.0
    pieces: int = 20
    after: int = 0
    met: int = 0

    def fits(self, method: str, path: str) -> bool:
        """Whether a request is one of those."""
        return (not self.method or method == self.method) and bool(re.search(self.path, path))


@dataclass
class FaultProxy:
    """The proxy; its address is `url`."""

    target: str
    requests: list[tuple[str, str]] = field(default_factory=list)
    _faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _port: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"http://127.0.0.1:{self._port}"

    def add(self, fault: Fault) -> Fault:
        """Let something go wrong from now on; returns it, so that `met` can be asked for."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Let all go well again."""
        with self._lock:
            self._faults.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The fault of a request, if there is one."""
        with self._lock:
            self.requests.append((method, path))
            for fault in self._faults:
                if not fault.times or not fault.fits(method, path):
                    continue
                if fault.after:
                    fault.after -= 1
                    continue
                fault.times -= 1
                fault.met += 1
                return fault
        return None

    @contextlib.contextmanager
    def running(self) -> Iterator[FaultProxy]:
        """Serve while the block runs."""
        proxy = self

        class Handler(_Handler):
            owner = proxy

        with _Server(("127.0.0.1", 0), Handler) as server:
            self._port = int(server.server_address[1])
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                self._ending.set()
                server.shutdown()
                thread.join()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FaultProxy

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def handle_any(self) -> None:
        body = self._body()
        fault = self.owner.take(self.command, self.path)
        kind = fault.kind if fault else None
        if fault is None:
            self._answer(*self._forward(body))
        elif kind == "status":
            self._refuse(fault)
        elif kind == "late":
            self.owner._ending.wait(fault.seconds)
            self.close_connection = True
        elif kind == "reset":
            self._reset()
        elif kind == "reset_after":
            self._forward(body)
            self._reset()
        elif kind == "noise":
            self.wfile.write(b'{"rest": "of a body"}')
            self.close_connection = True
        else:
            self._damage(fault, *self._forward(body))

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        if self.headers.get("Expect", "").lower() == "100-continue":
            pass  # `handle_expect_100` has answered
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _forward(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        address = urlsplit(self.owner.target)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        # The client's own `Host`: it is part of what is signed.
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP | {"expect"}}
        headers["Content-Length"] = str(len(body))
        try:
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            content = response.read()
            found = {k: v for k, v in response.getheaders() if k.lower() not in _HOP}
            if self.command == "HEAD":
                found["Content-Length"] = response.getheader("Content-Length", "0")
            return response.status, found, content
        except OSError:  # the server is away
            return 502, {}, b""
        finally:
            connection.close()

    def _answer(
        self, status: int, headers: Mapping[str, str], content: bytes, length: int | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, fault: Fault) -> None:
        code = fault.code or _CODES.get(fault.status, "InternalError")
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
        content = b"" if self.command == "HEAD" else text.encode()
        self._answer(fault.status, {"Content-Type": "application/xml"}, content)

    def _reset(self) -> None:
        # With a linger of 0 the socket ends with RST rather than FIN.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _damage(
        self, fault: Fault, status: int, headers: Mapping[str, str], content: bytes
    ) -> None:
        if fault.kind == "flip" and content:
            damaged = bytearray(content)
            damaged[len(damaged) // 2] ^= 1
            self._answer(status, headers, bytes(damaged))
        elif fault.kind == "short":
            self._answer(status, headers, content[: len(content) // 2])
        elif fault.kind == "long":
            self._answer(status, headers, content * 2)
        elif fault.kind == "cut":
            self._answer(status, headers, content[: len(content) // 2], len(content))
            self.close_connection = True
        elif fault.kind == "slow":
            self._trickle(fault, status, headers, content)
        else:
            self._answer(status, headers, content)

    def _trickle(
        self, fault: Fault, status: int, headers: Mapping[str, str], content: bytes
    ) -> None:
        self._answer(status, headers, b"", len(content))
        step = max(1, len(content) // fault.pieces)
        for start in range(0, len(content), step):
            if self.owner._ending.wait(fault.seconds / fault.pieces):
                break
            self.wfile.write(content[start : start + step])
            self.wfile.flush()
