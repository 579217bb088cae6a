"""A relay passes on every byte, in its order, and keeps each for the time that was asked for."""

from __future__ import annotations

import http.client
import http.server
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from benchmarks.delayed import DelayedServer

BODY = bytes(range(256)) * 40_000  # many chunks


class _Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def echo_url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_bytes_arrive_late_and_as_they_were_sent(echo_url: str) -> None:
    with DelayedServer(echo_url, 200.0) as delayed:
        connection = http.client.HTTPConnection(urlsplit(delayed.url).netloc, timeout=30)
        for _ in range(2):  # a connection is used again
            started = time.monotonic()
            connection.request("POST", "/", BODY)
            assert connection.getresponse().read() == BODY
            assert time.monotonic() - started >= 0.2
        connection.close()


def test_what_goes_through_is_counted(echo_url: str) -> None:
    with DelayedServer(echo_url, 1.0) as delayed:
        connection = http.client.HTTPConnection(urlsplit(delayed.url).netloc, timeout=30)
        before = delayed.traffic()
        for body in (BODY, b"", BODY):
            connection.request("POST", "/", body)
            assert connection.getresponse().read() == body
        found = delayed.traffic().since(before)
        connection.close()
    assert before == (0, 0, 0)
    assert found.requests == 3
    for num_bytes in (found.sent_bytes, found.received_bytes):
        assert 2 * len(BODY) < num_bytes < 2 * len(BODY) + 3000


def test_a_connection_ends_where_the_server_is_away() -> None:
    with DelayedServer("http://127.0.0.1:9", 1.0) as delayed:
        connection = http.client.HTTPConnection(urlsplit(delayed.url).netloc, timeout=30)
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            connection.request("POST", "/", b"")
            connection.getresponse()
        connection.close()
