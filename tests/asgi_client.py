"""Requests to an ASGI application without a server: every header is sent as it is written here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope

Pairs = Sequence[tuple[str, str]]
_COMMON = {"asgi": {"version": "3.0"}, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 3000)}


@dataclass(frozen=True)
class Answer:
    """What an application has answered.

    Args:
        status: The HTTP status.
        headers: Its headers.
        body: Its body.
    """

    status: int
    headers: Headers
    body: bytes = field(repr=False)

    @property
    def text(self) -> str:
        return self.body.decode()


def request(
    app: ASGIApp, method: str, address: str, headers: Pairs = (), body: bytes = b""
) -> Answer:
    """The answer to one request.

    Args:
        app: The application.
        method: Such as GET.
        address: Path and query.
        headers: All headers; none is added.
        body: The body.
    """
    sent: list[Message] = []

    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()  # the client stays connected
        return waiting.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {**_scope("http", address, headers), "method": method, "http_version": "1.1"}
    asyncio.run(_run(app, scope, receive, send))
    start, *parts = sent
    text = b"".join(part.get("body", b"") for part in parts)
    return Answer(start["status"], Headers(raw=list(start["headers"])), text)


def talk(app: ASGIApp, address: str, headers: Pairs, *messages: Any) -> list[Message]:
    """What an application sends on a WebSocket to which these JSON messages are sent.

    It is closed as soon as each message but the last has been answered, or the application has
    closed it.
    """
    sent: list[Message] = []
    waiting = [{"type": "websocket.connect"}]
    waiting += [{"type": "websocket.receive", "text": json.dumps(m)} for m in messages]

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {**_scope("websocket", address, headers), "subprotocols": ["graphql-ws"]}
    asyncio.run(_run(app, scope, receive, send))
    return sent


def _scope(kind: str, address: str, headers: Pairs) -> Scope:
    path, _, query = address.partition("?")
    return {
        **_COMMON,
        "type": kind,
        "scheme": "http" if kind == "http" else "ws",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }


async def _run(app: ASGIApp, scope: Scope, receive: Any, send: Any) -> None:
    await app(scope, receive, send)
