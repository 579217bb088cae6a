"""A REST catalog for tests: what reading uses of Iceberg's OpenAPI, over another catalog.

Source: https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyiceberg.exceptions import NoSuchTableError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

TOKEN = "rest-token-1"


@contextmanager
def rest_server(catalog: Catalog) -> Iterator[tuple[str, list[str]]]:
    """Serve a catalog; gives its URL, and the requests that come."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0]).strip("/").split("/")
            requests.append("/".join(path))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._answer(401, _error(401, "NotAuthorizedException", "who are you?"))
            elif path == ["v1", "config"]:
                self._answer(200, {"defaults": {}, "overrides": {}})
            elif len(path) == 5 and path[1:4:2] == ["namespaces", "tables"]:
                self._table((path[2], path[4]))
            else:
                self._answer(404, _error(404, "NoSuchEndpoint", self.path))

        def _table(self, identifier: tuple[str, str]) -> None:
            try:
                found = catalog.load_table(identifier)
            except NoSuchTableError as error:
                self._answer(404, _error(404, "NoSuchTableException", str(error)))
                return
            metadata = json.loads(found.metadata.model_dump_json())
            body = {
                "metadata-location": found.metadata_location,
                "metadata": metadata,
                "config": {},
            }
            self._answer(200, body)

        def _answer(self, status: int, body: object) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()


def _error(code: int, kind: str, message: str) -> dict[str, object]:
    return {"error": {"code": code, "type": kind, "message": message}}
