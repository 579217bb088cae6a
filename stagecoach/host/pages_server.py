"""The process that serves the pages of runs beside the UI, and ends with it.

    python -m stagecoach.host.pages_server STORAGE HOST PORT PARENT

`GET /runs/<run>` is the HTML page of a run in the storage, which may be local or in a cloud.
Dagster's webserver offers such a file as a download only, and a browser opens no `file://` link of
a page that it got by HTTP. The policy of the UI holds here, too.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from stagecoach.host import side_process
from stagecoach.infra.config.settings import PAGES_VARIABLE, load_settings
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.layout import run_page
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.planner.errors import StagecoachError
from stagecoach.web.policy import WebPolicy, take_policy
from stagecoach.web.serving import BackgroundServer

if TYPE_CHECKING:
    from starlette.requests import Request

_PATH = re.compile(r"/runs/([A-Za-z0-9][A-Za-z0-9_.-]{0,199})")
_HEADERS = {
    "Cache-Control": "no-store",
    # The page loads nothing and runs no script; so nothing in it ever shall.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'",
}


def launch(
    storage: str, host: str, port: int, url: str, log: Path, policy: WebPolicy
) -> Mapping[str, str]:
    """Start the server in the background and return at once; it ends with this process.

    Args:
        storage: The storage root.
        host: Address to listen on.
        port: Port, which is free.
        url: The address at which browsers reach it.
        log: What the server has to say.
        policy: Which requests it answers.

    Returns:
        What the environment of runs must have, so that they link their pages.
    """
    side_process.launch(
        "stagecoach.host.pages_server",
        storage,
        host,
        str(port),
        log=log,
        environment={**os.environ, **policy.to_environment()},
    )
    return {PAGES_VARIABLE: url}


def pages_app(store: ObjectStore) -> Starlette:
    """The application that serves the pages in a storage root."""

    # Not a coroutine, so that it runs in a thread: the storage may be slow.
    def page(request: Request) -> Response:
        status, text = find_page(store, request.scope["path"])
        kind = "html" if status is HTTPStatus.OK else "plain"
        return Response(text, status, _HEADERS, media_type=f"text/{kind}")

    return Starlette(routes=[Route("/{path:path}", page)])


def find_page(store: ObjectStore, path: str) -> tuple[HTTPStatus, bytes]:
    """The page at a path, or why there is none."""
    asked = _PATH.fullmatch(path)
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
    policy = take_policy(os.environ)
    store = load_settings(overrides={"storage_root": storage}).open_store()
    with BackgroundServer(pages_app(store), policy, host, int(port)):
        side_process.await_end_of(int(parent))


if __name__ == "__main__":
    main(*sys.argv[1:])
