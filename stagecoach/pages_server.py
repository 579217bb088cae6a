"""The process that serves the pages of runs beside the UI, and ends with it.

    python -m stagecoach.pages_server STORAGE HOST PORT PARENT

In: the storage root, local or of a cloud, and an address. Out: `GET /runs/<run>`, the HTML page of
a run. Dagster's webserver offers such a file as a download only, and a browser opens no `file://`
link of a page that it got by HTTP.
"""

from __future__ import annotations

import re
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from infra.errors import StorageError
from infra.settings import PAGES_VARIABLE, load_settings
from infra.storage.layout import run_page
from infra.storage.object_store import ObjectMissingError, ObjectStore
from planner.errors import StagecoachError
from stagecoach import side_process

_PATH = re.compile(r"/runs/([A-Za-z0-9][A-Za-z0-9_.-]{0,199})")
_HEADERS = {
    "Cache-Control": "no-store",
    # The page loads nothing and runs no script; so nothing in it ever shall.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


def launch(storage: str, host: str, port: int, shown_host: str, log: Path) -> dict[str, str]:
    """Start the server in the background and return at once; it ends with this process.

    Args:
        storage: The storage root.
        host: Address to listen on.
        port: Port, which is free.
        shown_host: The host as browsers know it.
        log: What the server has to say.

    Returns:
        What the environment of runs must have, so that they link their pages.
    """
    side_process.launch("stagecoach.pages_server", storage, host, str(port), log=log)
    name = f"[{shown_host}]" if ":" in shown_host else shown_host
    return {PAGES_VARIABLE: f"http://{name}:{port}"}


def serve(store: ObjectStore, host: str, port: int) -> ThreadingHTTPServer:
    """Serve in threads of this process and return at once.

    Args:
        store: The storage root.
        host: Address to listen on.
        port: Port; 0 for any that is free.
    """

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "stagecoach", ""

        def do_GET(self) -> None:
            """Send a page."""
            status, text = find_page(store, self.path)
            self.send_response(status)
            kind = "html" if status is HTTPStatus.OK else "plain"
            self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the log is for faults."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="pages", daemon=True).start()
    return server


def find_page(store: ObjectStore, path: str) -> tuple[HTTPStatus, bytes]:
    """The page at the path of an address, or why there is none."""
    asked = _PATH.fullmatch(unquote(path.partition("?")[0]))
    if asked is None:
        return HTTPStatus.NOT_FOUND, b"no such page; ask for /runs/<run>"
    try:
        return HTTPStatus.OK, store.read_bytes(run_page(asked[1]))
    except ObjectMissingError:
        return HTTPStatus.NOT_FOUND, b"this run has no page, or it was removed"
    except StorageError as error:
        return HTTPStatus.BAD_GATEWAY, str(error).encode()
    except (StagecoachError, ValueError):
        return HTTPStatus.NOT_FOUND, b"no such run"


def main(storage: str, host: str, port: str, parent: str) -> None:
    """Serve until the process that started this one has ended."""
    store = load_settings(overrides={"storage_root": storage}).open_store()
    serve(store, host, int(port))
    side_process.await_end_of(int(parent))


if __name__ == "__main__":
    main(*sys.argv[1:])
