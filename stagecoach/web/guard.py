"""The ASGI middleware that every request passes before it reaches an application of ours.

    Host ─▶ Origin ─▶ Sec-Fetch-* ─▶ token ─▶ method and content type ─▶ application ─▶ headers

What a check refuses is answered here, with the reason as text. A WebSocket connection needs Host,
Origin and token, too, and is closed before it is accepted if it lacks one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from stagecoach.web.graphql_rules import changes_something
from stagecoach.web.login import CONTENT_SECURITY_POLICY, login_page
from stagecoach.web.policy import Authority, Origin, WebPolicy
from stagecoach.web.token import SharedToken

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("GET", "HEAD", "POST")
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_POLICY_VIOLATION = 1008  # close code of RFC 6455
_MAX_FORM_BYTES = 4096
# Dagster shows a notebook in a frame of its own page, and nothing else.
_FRAMED_BY_US = ("/notebook", "/dagit/notebook")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class _Refusal:
    status: int
    reason: str
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        return PlainTextResponse(f"{self.reason}\n", self.status, self.headers)


class Guard:
    """Lets requests through to an application that the policy accepts.

    Args:
        app: The application.
        policy: What is accepted.
    """

    def __init__(self, app: ASGIApp, policy: WebPolicy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or connection."""
        if scope["type"] == "http":
            await self._serve_request(Request(scope, receive), send)
        elif scope["type"] == "websocket":
            await self._serve_socket(HTTPConnection(scope), receive, send)
        else:
            await self._app(scope, receive, send)

    async def _serve_request(self, request: Request, send: Send) -> None:
        answer = await self._answer(request)
        secured = _secured(send, request.scope["path"], keep_private=self._policy.token is not None)
        await (answer or self._app)(request.scope, request.receive, secured)

    async def _serve_socket(self, connection: HTTPConnection, receive: Receive, send: Send) -> None:
        refused = _foreign(connection, self._policy)
        if refused or not _is_known(connection, self._policy.token):
            # The server turns this into status 403: the connection was never accepted.
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        await self._app(connection.scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """The answer to a request that does not reach the application."""
        if request.method not in _METHODS:
            reason = f"method {request.method[:20]!r} is not allowed"
            return _Refusal(405, reason, {"Allow": ", ".join(_METHODS)}).response()
        if refused := _foreign(request, self._policy) or _embedded(request):
            return refused.response()
        token = self._policy.token
        if token is not None:
            if request.method == "POST" and _media_type(request.headers) == _FORM:
                return await _log_in(request, token)
            if not _is_known(request, token):
                return _demand_login(request)
        refused = _unsafe(request)
        return refused.response() if refused else None


def _foreign(connection: HTTPConnection, policy: WebPolicy) -> _Refusal | None:
    """Why a request is not for us, or not from a page of ours."""
    hosts = connection.headers.getlist("host")
    host = Authority.parse(hosts[0]) if len(hosts) == 1 else None
    if host is None:
        return _Refusal(400, "the request has no valid Host header")
    if not policy.allows_host(host):
        return _Refusal(
            403,
            f"host {host.name[:255]!r} is not allowed; if it is yours, "
            "start stagecoach ui with --allow-host",
        )
    given = connection.headers.getlist("origin")
    if not given:
        return None  # no browser, or a request that needs no permission; see _embedded and _unsafe
    origin = Origin.parse(given[0]) if len(given) == 1 else None
    is_secure = connection.scope.get("scheme") in ("https", "wss")
    if origin is None or not policy.allows_origin(origin, host, is_secure=is_secure):
        return _Refusal(
            403,
            f"origin {given[0][:255]!r} is not allowed; if it is yours, "
            "start stagecoach ui with --allow-origin",
        )
    return None


def _embedded(request: Request) -> _Refusal | None:
    """Why a request that a page of another site caused is refused, as far as the browser tells.

    Links from elsewhere may open pages of ours; images, scripts and frames elsewhere load nothing.
    """
    headers = request.headers
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site") or "origin" in headers:
        return None
    how = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    if request.method != "POST" and how == ("navigate", "document"):
        return None
    return _Refusal(403, "pages of other sites may link here, and embed nothing")


def _unsafe(request: Request) -> _Refusal | None:
    """Why a request could have been made without the browser asking us for permission first.

    A browser sends JSON across origins only after a preflight request, which nothing here answers.
    """
    if request.method == "POST":
        if _media_type(request.headers) != _JSON:
            return _Refusal(415, f"POST requests need Content-Type: {_JSON}")
        return None
    if changes_something(request.query_params.getlist("query")):
        reason = f"GraphQL mutations and subscriptions need POST with Content-Type: {_JSON}"
        return _Refusal(405, reason, {"Allow": "POST"})
    return None


def _media_type(headers: Headers) -> str:
    # Case matters: where it is not JSON in lower case, Dagster reads the address, not the body.
    given = headers.getlist("content-type")
    return given[0].partition(";")[0].strip() if len(given) == 1 else ""


def _is_known(connection: HTTPConnection, token: SharedToken | None) -> bool:
    """Whether a request has the token, or a login's cookie; always where there is no token."""
    if token is None:
        return True
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.is_token(given.strip())
    cookie = connection.cookies.get(token.cookie_name)
    return cookie is not None and token.is_cookie(cookie)


def _demand_login(request: Request) -> Response:
    headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
    if request.method == "POST" or "text/html" not in request.headers.get("accept", ""):
        return _Refusal(401, "this needs Authorization: Bearer TOKEN", headers).response()
    # "none" is an address that a user has typed, "same-origin" a page of ours: both send cookies.
    is_link = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return HTMLResponse(login_page(load_again=is_link), 401, headers)


async def _log_in(request: Request, token: SharedToken) -> Response:
    headers = {"Cache-Control": "no-store"}
    if not token.is_token(await _sent_token(request)):
        headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return HTMLResponse(login_page(is_wrong=True), 401, headers)
    # Relative to the address of the page, so it never leads to another site.
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    address = "./" + path.decode("latin-1").rpartition("/")[2]
    if query := request.scope["query_string"].decode("latin-1"):
        address += f"?{query}"
    response = RedirectResponse(address, 303, headers)
    response.set_cookie(
        token.cookie_name,
        token.cookie_value,
        httponly=True,
        samesite="strict",
        # What the browser sees, also where a proxy has decrypted the request.
        secure=request.headers.get("origin", "").startswith("https://"),
    )
    return response


async def _sent_token(request: Request) -> str:
    """The token in a login form; empty if there is none or the form is too large for one."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_FORM_BYTES:
                return ""
    except ClientDisconnect:
        return ""
    fields = parse_qs(body.decode("latin-1"))
    return fields.get("token", [""])[0].strip()


def _secured(send: Send, path: str, *, keep_private: bool) -> Send:
    """Send an answer with headers that no answer lacks.

    Args:
        send: Sends it.
        path: Path of the request.
        keep_private: Whether caches that several users share must not keep it.
    """
    ancestors, options = ("'self'", "SAMEORIGIN") if path in _FRAMED_BY_US else ("'none'", "DENY")

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=_list_of(message.get("headers", ())))
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["X-Frame-Options"] = options
            # A policy of its own: browsers apply all, so that of the application stays as it is.
            headers.append("Content-Security-Policy", f"frame-ancestors {ancestors}")
            if keep_private:
                headers.setdefault("Cache-Control", "private")
            message = {**message, "headers": headers.raw}
        await send(message)

    return send_secured


def _list_of(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in headers]
