"""The web servers of `stagecoach ui` answer only requests that their policy accepts.

Each attack is first made on Dagster's application as it is, where it must work: an attack that works
nowhere proves nothing. Then the `Guard` is put before the application.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import pytest
from dagster._core.test_utils import create_run_for_test, instance_for_test
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster_webserver.app import create_app_from_workspace_process_context
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from stagecoach.host.metrics_server import metrics_app
from stagecoach.host.pages_server import pages_app
from stagecoach.infra.storage.layout import run_page
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.telemetry.metrics import MetricsFolder
from stagecoach.web import dagster_dev
from stagecoach.web.guard import Guard
from stagecoach.web.policy import (
    POLICY_VARIABLE,
    Authority,
    Origin,
    WebPolicy,
    WebPolicyError,
    make_policy,
    take_policy,
)
from stagecoach.web.serving import BackgroundServer
from stagecoach.web.token import SharedToken, TokenError
from tests.asgi_client import Answer, Pairs, request, talk

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from starlette.requests import Request
    from starlette.types import ASGIApp

TOKEN = "correct-horse-battery"
HOST = ("Host", "localhost:3000")
OWN = ("Origin", "http://localhost:3000")
EVIL = ("Origin", "https://evil.example")
JSON = ("Content-Type", "application/json")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
HTML = ("Accept", "text/html,application/xhtml+xml")
BEARER = ("Authorization", f"Bearer {TOKEN}")
READ = "{ __typename }"


@dataclass(frozen=True)
class Dagster:
    """Dagster's own application over an empty workspace.

    Args:
        app: The application.
        instance: Its instance.
    """

    app: ASGIApp
    instance: DagsterInstance

    def has(self, run: str) -> bool:
        return self.instance.get_run_by_id(run) is not None

    def new_run(self) -> str:
        return create_run_for_test(self.instance).run_id


@pytest.fixture(scope="module")
def dagster() -> Iterator[Dagster]:
    with (
        instance_for_test() as instance,
        WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as context,
    ):
        yield Dagster(create_app_from_workspace_process_context(context), instance)


def echo() -> Starlette:
    """An application that answers everything, with its own security headers."""

    async def answer(request: Request) -> Response:
        headers = {"Content-Security-Policy": "script-src 'nonce-1'", "Cache-Control": "max-age=9"}
        return PlainTextResponse(f"reached by {request.method}", headers=headers)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST", "OPTIONS"])])


def guarded(app: ASGIApp | None = None, host: str = "127.0.0.1", **options: object) -> Guard:
    return Guard(app or echo(), make_policy(host, **options))  # type: ignore[arg-type]


def deletion(run: str, name: str = "") -> str:
    return f'mutation {name} {{ deletePipelineRun(runId: "{run}") {{ __typename }} }}'


# ---------------------------------------------------------------- mutations


@dataclass(frozen=True)
class Attack:
    """A request that a page of another site can have a browser send without a preflight.

    Args:
        method: Of the request.
        document: The GraphQL document, with `DELETE` for the mutation's field.
        more: Further parameters of the query.
        headers: Besides Host.
        path: Of the request.
        in_body: How the body carries the document; the query of the address does if empty.
    """

    method: str = "GET"
    document: str = "mutation { DELETE }"
    more: tuple[tuple[str, str], ...] = ()
    headers: Pairs = ()
    path: str = "/graphql"
    in_body: str = ""

    def send(self, app: ASGIApp, run: str) -> Answer:
        field = f'deletePipelineRun(runId: "{run}") {{ __typename }}'
        document = self.document.replace("DELETE", field)
        body, address = b"", self.path
        if self.in_body:
            body = self.in_body.replace("DOCUMENT", json.dumps(document)).encode()
        else:
            address += "?" + urlencode([*self.more, ("query", document)])
        return request(app, self.method, address, [HOST, *self.headers], body)


TWO = "query Read { __typename } mutation Delete { DELETE }"
ATTACKS = {
    "GET": Attack(),
    "GET by name": Attack(document=TWO, more=(("operationName", "Delete"),)),
    "GET after a query parameter": Attack(more=(("query", READ),)),
    "GET with an alias": Attack(document="mutation M { version: DELETE }"),
    "GET with a fragment": Attack(
        document="mutation { ...F } fragment F on Mutation { x: DELETE }"
    ),
    "GET with an inline fragment": Attack(document="mutation { ... on Mutation { DELETE } }"),
    "GET with a directive": Attack(document="mutation { ... @include(if: true) { DELETE } }"),
    "GET after comments": Attack(document="# query\n\ufeff,,, mutation#\n{ DELETE }"),
    "GET of a path that ends with a line feed": Attack(path="/graphql%0A"),
    "GET of a path in percent": Attack(path="/%67raphql"),
    "POST without a body": Attack(method="POST"),
    "POST of a form": Attack(method="POST", headers=[FORM]),
    "POST of text": Attack(method="POST", headers=[("Content-Type", "text/plain")]),
    "POST of text that names JSON": Attack(
        method="POST",
        headers=[("Content-Type", "text/plain; application/json")],
        in_body='{"query": DOCUMENT}',
    ),
    "POST of parts that name JSON": Attack(
        method="POST",
        headers=[("Content-Type", "multipart/form-data; boundary=application/json")],
        in_body='{"query": DOCUMENT}',
    ),
    "POST of JSON in capitals": Attack(
        method="POST", headers=[("Content-Type", "Application/JSON")]
    ),
    "POST of JSON by another page": Attack(
        method="POST", headers=[JSON, EVIL], in_body='{"query": DOCUMENT}'
    ),
    "POST of JSON by a page without origin": Attack(
        method="POST", headers=[JSON, ("Origin", "null")], in_body='{"query": DOCUMENT}'
    ),
    "POST of JSON by another port": Attack(
        method="POST",
        headers=[JSON, ("Origin", "http://localhost:8000")],
        in_body='{"query": DOCUMENT}',
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_foreign_page_changes_nothing(name: str, dagster: Dagster) -> None:
    # Dagster says so when it looks for the run that it is to delete.
    executed = "RunNotFoundError"
    answer = ATTACKS[name].send(guarded(dagster.app), "no-such-run")
    assert answer.status in (403, 405, 415), answer.text
    assert executed not in answer.text
    assert executed in ATTACKS[name].send(dagster.app, "no-such-run").text


def test_the_document_of_a_get_request_is_read_by_dagsters_parser(dagster: Dagster) -> None:
    app = guarded(dagster.app)
    for document, status in (
        (READ, 200),
        ("query A { __typename } query B { version }", 400),  # no operationName
        ('{ __type(name: "mutation { x }") { name } }', 200),
        ("query { ...F } fragment F on Query { version }", 200),
        ("fragment F on Mutation { __typename }", 400),
        ("subscription { __typename }", 405),
        ("{ __typename } subscription S { __typename }", 405),
        ('[{"query": "mutation { x }"}]', 400),  # a batch
        ("{a" * 5_000, 400),  # too deep to be read
        ("mutation {", 400),
    ):
        answer = request(app, "GET", f"/graphql?query={quote(document)}", [HOST])
        assert answer.status == status, (document[:80], answer.text)
    # A persisted query has no document.
    extensions = quote('{"persistedQuery": {"version": 1, "sha256Hash": "0"}}')
    assert request(app, "GET", f"/graphql?extensions={extensions}", [HOST]).status == 400


def test_a_program_and_our_own_page_use_graphql_as_before(dagster: Dagster) -> None:
    app = guarded(dagster.app)
    for headers in ([HOST, JSON], [HOST, OWN, ("Content-Type", "application/json; charset=utf-8")]):
        run = dagster.new_run()
        body = json.dumps({"query": deletion(run)}).encode()
        assert request(app, "POST", "/graphql", headers, body).status == 200
        assert not dagster.has(run)


def test_assets_are_reported_with_json_only(dagster: Dagster) -> None:
    address, body = "/report_asset_materialization/orders", b"{}"
    assert request(dagster.app, "POST", address, [HOST]).status == 200
    assert request(guarded(dagster.app), "POST", address, [HOST]).status == 415
    assert request(guarded(dagster.app), "POST", address, [HOST, JSON], body).status == 200


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "get"])
def test_no_other_method_reaches_an_application(method: str) -> None:
    answer = request(guarded(), method, "/graphql", [HOST])
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    # What a browser asks before it sends JSON to another site is never granted.
    assert "access-control-allow-origin" not in answer.headers


# ---------------------------------------------------------------- hosts and origins


@pytest.mark.parametrize(
    ("listening", "name", "status"),
    [
        ("127.0.0.1", "localhost", 200),
        ("127.0.0.1", "LOCALHOST:80", 200),
        ("127.0.0.1", "127.0.0.1:9999", 200),  # a tunnel may have another port
        ("127.0.0.1", "[::1]:3000", 200),
        ("127.0.0.1", "[0:0:0:0:0:0:0:1]", 200),
        ("ui.example.com", "ui.example.com:3000", 200),
        ("10.1.2.3", "10.1.2.3", 200),
        ("fd00::1", "[FD00:0::1]:3000", 200),
        ("0.0.0.0", f"{socket.gethostname()}:3000", 200),
        ("0.0.0.0", "localhost", 200),
        ("0.0.0.0", "0.0.0.0:3000", 403),
        ("0.0.0.0", "10.1.2.3", 403),
        ("127.0.0.1", "evil.example", 403),
        ("127.0.0.1", "localhost.evil.example", 403),
        ("127.0.0.1", "127.0.0.1.evil.example", 403),
        ("127.0.0.1", "2130706433", 403),
        ("127.0.0.1", "ui.example.com", 403),
        ("127.0.0.1", "localhost.", 403),
        ("127.0.0.1", "", 400),
        ("127.0.0.1", "localhost@evil.example", 400),
        ("127.0.0.1", "evil.example/localhost", 400),
        ("127.0.0.1", "localhost:3000:80", 400),
        ("127.0.0.1", "localhost, evil.example", 400),
        ("127.0.0.1", "[::1", 400),
        ("127.0.0.1", "[1.2]", 400),
        ("127.0.0.1", "localh\u00f6st", 400),
    ],
)
def test_a_host_must_be_one_of_ours(listening: str, name: str, status: int) -> None:
    answer = request(guarded(host=listening), "GET", "/", [("Host", name)])
    assert answer.status == status, answer.text


def test_a_request_has_one_host_and_proxies_do_not_change_it() -> None:
    app = guarded()
    assert request(app, "GET", "/", []).status == 400
    assert request(app, "GET", "/", [HOST, ("Host", "evil.example")]).status == 400
    forwarded = [("Host", "evil.example"), ("X-Forwarded-Host", "localhost")]
    assert request(app, "GET", "/", forwarded).status == 403


def test_a_host_can_be_allowed() -> None:
    app = guarded(hosts=["Dagster.example.com", "fd00::2"])
    for name in ("dagster.example.com:8080", "[fd00::2]", "localhost"):
        assert request(app, "GET", "/", [("Host", name)]).status == 200
    assert request(app, "GET", "/", [("Host", "example.com")]).status == 403
    anywhere = guarded(hosts=["*"], token=TOKEN)
    assert request(anywhere, "GET", "/", [("Host", "any.example"), BEARER]).status == 200
    assert request(anywhere, "GET", "/", [("Host", "any.example")]).status == 401


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:3000", "http://localhost:3000", 200),
        ("localhost", "http://localhost", 200),
        ("localhost", "http://localhost:80", 200),
        ("[::1]:3000", "http://[::1]:3000", 200),
        ("dagster.example.com", "https://dagster.example.com", 200),  # a proxy has decrypted it
        ("dagster.example.com:443", "https://dagster.example.com", 200),
        ("localhost:3000", "https://proxy.example.com", 200),
        ("localhost:3000", "https://proxy.example.com:443", 200),
        ("localhost:3000", "http://proxy.example.com", 403),
        ("localhost:3000", "https://proxy.example.com:8443", 403),
        ("localhost:3000", "http://127.0.0.1:3000", 403),
        ("localhost:3000", "http://localhost:3001", 403),
        ("localhost:3000", "http://localhost", 403),
        ("localhost:3000", "https://dagster.example.com", 403),
        ("localhost:3000", "null", 403),
        ("localhost:3000", "", 403),
        ("localhost:3000", "file://", 403),
        ("localhost:3000", "chrome-extension://localhost:3000", 403),
        ("localhost:3000", "http://localhost:3000.evil.example", 403),
        ("localhost:3000", "http://user@localhost:3000", 403),
        ("localhost:3000", "http://localhost:3000 https://evil.example", 403),
    ],
)
def test_an_origin_must_be_our_own_or_allowed(host: str, origin: str, status: int) -> None:
    app = guarded(hosts=["dagster.example.com"], origins=["https://proxy.example.com/"])
    for method in ("GET", "POST"):
        headers = [("Host", host), ("Origin", origin), JSON]
        assert request(app, method, "/", headers, b"{}").status == status


def test_two_origins_are_none() -> None:
    assert request(guarded(), "GET", "/", [HOST, OWN, EVIL]).status == 403


def test_a_page_without_encryption_cannot_use_an_encrypted_server() -> None:
    policy, origin, host = (
        WebPolicy(),
        Origin("http", "localhost", 3000),
        Authority("localhost", 3000),
    )
    assert policy.allows_origin(origin, host, is_secure=False)
    assert not policy.allows_origin(origin, host, is_secure=True)


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
        ("cross-site", "navigate", "document", 200),  # a link
        ("same-site", "navigate", "document", 200),
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "no-cors", "script", 403),
        ("same-site", "no-cors", "script", 403),  # a page of another port
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "object", 403),
        ("same-site", "navigate", "iframe", 403),
        ("same-origin", "navigate", "iframe", 200),  # that is what frame-ancestors is for
    ],
)
def test_pages_elsewhere_link_and_embed_nothing(
    site: str, mode: str, dest: str, status: int
) -> None:
    told = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", dest)]
    assert request(guarded(), "GET", "/", [HOST, *told]).status == status


# ---------------------------------------------------------------- WebSocket


INIT = {"type": "connection_init"}


def test_a_subscription_works_as_before(dagster: Dagster) -> None:
    start = {"type": "start", "id": "1", "payload": {"query": "subscription { no }"}}
    sent = talk(guarded(dagster.app), "/graphql", [HOST, OWN], INIT, start)
    assert [message["type"] for message in sent[:2]] == ["websocket.accept", "websocket.send"]
    assert '"connection_ack"' in sent[1]["text"]
    assert '"type":"error"' in sent[2]["text"]


def test_a_websocket_runs_no_mutation(dagster: Dagster) -> None:
    run = dagster.new_run()
    start = {"type": "start", "id": "1", "payload": {"query": deletion(run)}}
    sent = talk(guarded(dagster.app), "/graphql", [HOST, OWN], INIT, start)
    assert "is not defined" in sent[2]["text"]
    assert dagster.has(run)


@pytest.mark.parametrize(
    "headers",
    [
        [HOST, EVIL],
        [HOST, ("Origin", "null")],
        [HOST, ("Origin", "http://localhost:8000")],
        [("Host", "evil.example:3000"), ("Origin", "http://evil.example:3000")],
        [("Host", "evil.example")],
        [],
    ],
)
def test_a_foreign_page_opens_no_websocket(headers: Pairs, dagster: Dagster) -> None:
    assert talk(guarded(dagster.app), "/graphql", headers, INIT) == [
        {"type": "websocket.close", "code": 1008}
    ]
    assert talk(dagster.app, "/graphql", headers, INIT)[0]["type"] == "websocket.accept"


def test_a_websocket_needs_the_token(dagster: Dagster) -> None:
    app = guarded(dagster.app, token=TOKEN)
    assert talk(app, "/graphql", [HOST, OWN], INIT)[0]["type"] == "websocket.close"
    assert talk(app, "/graphql", [HOST, OWN, cookie(app)], INIT)[0]["type"] == "websocket.accept"
    assert talk(app, "/graphql", [HOST, BEARER], INIT)[0]["type"] == "websocket.accept"


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize(
    ("path", "frames", "ancestors"),
    [
        ("/", "DENY", "'none'"),
        ("/graphql", "DENY", "'none'"),
        ("/favicon.svg", "DENY", "'none'"),
        ("/notebook", "SAMEORIGIN", "'self'"),
    ],
)
def test_every_answer_has_the_headers(
    path: str, frames: str, ancestors: str, dagster: Dagster
) -> None:
    answer = request(guarded(dagster.app), "GET", path, [HOST, HTML])
    assert answer.headers["x-frame-options"] == frames
    assert answer.headers.getlist("content-security-policy")[-1] == f"frame-ancestors {ancestors}"
    assert answer.headers.getlist("x-content-type-options") == ["nosniff"]
    assert answer.headers.getlist("referrer-policy") == ["same-origin"]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_dagsters_own_policy_of_scripts_stays(dagster: Dagster) -> None:
    answer = request(guarded(dagster.app), "GET", "/runs", [HOST, HTML])
    own, ours = answer.headers.getlist("content-security-policy")
    nonce = own.partition("'nonce-")[2].partition("'")[0]
    assert nonce
    assert f'nonce="{nonce}"' in answer.text
    assert ours == "frame-ancestors 'none'"


def test_a_refusal_has_the_headers_too() -> None:
    for headers in ([("Host", "evil.example")], [HOST, EVIL], []):
        answer = request(guarded(token=TOKEN), "GET", "/", headers)
        assert answer.status >= 400
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


# ---------------------------------------------------------------- token


def log_in(app: ASGIApp, address: str = "/", token: str = TOKEN, *more: tuple[str, str]) -> Answer:
    body = urlencode({"token": token}).encode()
    return request(app, "POST", address, [HOST, FORM, *(more or (OWN,))], body)


def cookie(app: ASGIApp, token: str = TOKEN) -> tuple[str, str]:
    return "Cookie", log_in(app, "/", token).headers["set-cookie"].partition(";")[0]


def test_without_the_token_nothing_is_answered(dagster: Dagster) -> None:
    app = guarded(dagster.app, token=TOKEN)
    for path in ("/", "/server_info", "/graphql?query={__typename}", "/favicon.svg", "/robots.txt"):
        answer = request(app, "GET", path, [HOST])
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    body = json.dumps({"query": READ}).encode()
    assert request(app, "POST", "/graphql", [HOST, JSON], body).status == 401
    assert request(app, "POST", "/graphql", [HOST, JSON, BEARER], body).status == 200


@pytest.mark.parametrize(
    "given",
    [
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer ",
        "Bearer",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer {TOKEN.upper()}",
        "Bearer \u00e4",
    ],
)
def test_another_token_is_refused(given: str) -> None:
    answer = request(guarded(token=TOKEN), "GET", "/", [HOST, ("Authorization", given)])
    assert answer.status == 401
    assert TOKEN not in answer.text


def test_a_browser_logs_in_once(dagster: Dagster) -> None:
    app = guarded(dagster.app, token=TOKEN)
    page = request(app, "GET", "/runs/7?tab=a", [HOST, HTML])
    assert page.status == 401
    assert '<input id="token" name="token" type="password"' in page.text
    assert "script" not in page.text
    assert page.headers.getlist("content-security-policy")[0].startswith("default-src 'none';")

    answer = log_in(app, "/runs/7?tab=a")
    # Relative: right below any prefix of a proxy.
    assert (answer.status, answer.headers["location"]) == (303, "./7?tab=a")
    given = answer.headers["set-cookie"]
    assert "; HttpOnly" in given
    assert "; SameSite=strict" in given
    assert "; Path=/" in given
    assert "Max-Age" not in given
    assert "Secure" not in given
    assert TOKEN not in str(answer.headers.raw)

    shown = request(app, "GET", "/runs/7?tab=a", [HOST, HTML, cookie(app)])
    assert shown.status == 200
    assert "Stagecoach" not in shown.text


def test_the_cookie_is_for_https_only_where_the_browser_uses_that() -> None:
    app = guarded(hosts=["ui.example.com"], token=TOKEN)
    headers = [("Host", "ui.example.com"), ("Origin", "https://ui.example.com"), FORM]
    answer = request(app, "POST", "/", headers, f"token={TOKEN}".encode())
    assert answer.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize(
    ("address", "location"),
    [
        ("/", "./"),
        ("//evil.example", "./evil.example"),
        ("//evil.example/", "./"),
        ("/\\evil.example", "./%5Cevil.example"),
        ("/https://evil.example", "./evil.example"),
        ("/a%0d%0aSet-Cookie:x", "./a%0d%0aSet-Cookie:x"),
        ("/a/b%2Fc", "./b%2Fc"),
    ],
)
def test_a_login_never_leads_to_another_site(address: str, location: str) -> None:
    assert log_in(guarded(token=TOKEN), address).headers["location"] == location


def test_a_login_fails_without_the_token() -> None:
    app = guarded(token=TOKEN)
    for token in ("", "guess", TOKEN + "x", "\u00e4" * 20, "x" * 100_000):
        answer = log_in(app, "/", token)
        assert answer.status == 401
        assert "set-cookie" not in answer.headers
        assert "This is not the token." in answer.text
    for body in (b"", b"\xff\xfe", b"token", b"&&&=", b"Token=" + TOKEN.encode()):
        assert request(app, "POST", "/", [HOST, OWN, FORM], body).status == 401
    # A page elsewhere cannot log a browser in, either.
    assert log_in(app, "/", TOKEN, EVIL).status == 403
    # Without a token there is no login.
    assert log_in(guarded()).status == 415


def test_a_cookie_of_another_token_is_refused() -> None:
    app = guarded(token=TOKEN)
    name, value = cookie(app)
    assert request(app, "GET", "/", [HOST, (name, value)]).status == 200
    for wrong in (value[:-1], value + "0", value.partition("=")[0], f"{value[:20]}="):
        assert request(app, "GET", "/", [HOST, (name, wrong)]).status == 401
    other_token = "another-token-of-ours"
    other = guarded(token=other_token)
    assert request(other, "GET", "/", [HOST, (name, value)]).status == 401
    # On another port of the same host both are sent, and neither replaces the other.
    both = ("Cookie", f"{value}; {cookie(other, other_token)[1]}")
    assert request(app, "GET", "/", [HOST, both]).status == 200
    assert request(other, "GET", "/", [HOST, both]).status == 200


def test_a_logged_in_browser_is_still_safe_from_other_pages(dagster: Dagster) -> None:
    app, run = guarded(dagster.app, token=TOKEN), dagster.new_run()
    for attack in ATTACKS.values():
        headers = [*attack.headers, cookie(app)]
        changed = Attack(**{**attack.__dict__, "headers": headers})
        assert changed.send(app, run).status in (401, 403, 405, 415)
    assert dagster.has(run)


def test_a_link_elsewhere_leads_to_a_page_that_asks_once_more() -> None:
    app = guarded(token=TOKEN)
    for site, again in (("cross-site", True), ("same-origin", False), ("none", False)):
        told = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate")]
        page = request(app, "GET", "/", [HOST, HTML, *told, ("Sec-Fetch-Dest", "document")])
        assert ('http-equiv="refresh"' in page.text) is again


def test_caches_of_several_users_keep_nothing() -> None:
    def kept(app: ASGIApp, **options: object) -> str | None:
        headers = [HOST, BEARER]
        return request(guarded(app, **options), "GET", "/", headers).headers.get("cache-control")

    async def plain(scope: object, receive: object, send: object) -> None:
        await PlainTextResponse("x")(scope, receive, send)  # type: ignore[arg-type]

    assert kept(plain) is None
    assert kept(plain, token=TOKEN) == "private"
    assert kept(echo(), token=TOKEN) == "max-age=9"


@pytest.mark.parametrize("token", ["", "hunter2", "x" * 15, "with a space in it", "\u00fc" * 20])
def test_a_weak_token_is_refused(token: str) -> None:
    with pytest.raises(TokenError) as refused:
        SharedToken(token)
    assert not token or token not in str(refused.value)
    assert TOKEN not in repr(make_policy("127.0.0.1", token=TOKEN))


# ---------------------------------------------------------------- the policy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": ["https://x.example"]}, "'https://x.example' is not a valid host"),
        ({"hosts": ["x.example:80"]}, "is not a valid host"),
        ({"hosts": [""]}, "is not a valid host"),
        ({"hosts": ["*.example.com"]}, "is not a valid host"),
        ({"hosts": ["*"]}, "needs a token"),
        ({"origins": ["x.example"]}, "is not a valid origin"),
        ({"origins": ["https://x.example/path"]}, "is not a valid origin"),
        ({"origins": ["*"]}, "is not a valid origin"),
        ({"origins": ["null"]}, "is not a valid origin"),
    ],
)
def test_what_cannot_be_allowed_is_said(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(WebPolicyError, match=message.replace("*", r"\*")):
        make_policy("127.0.0.1", **options)  # type: ignore[arg-type]


def test_a_policy_reaches_another_process_once() -> None:
    policy = make_policy(
        "10.0.0.1", hosts=["a.example", "::2"], origins=["https://a.example"], token=TOKEN
    )
    environment = {"HOME": "/", **policy.to_environment()}
    assert take_policy(environment) == policy
    assert environment == {"HOME": "/"}
    with pytest.raises(WebPolicyError, match="start this server with: stagecoach ui"):
        take_policy(environment)


# ---------------------------------------------------------------- how Dagster is started


class Started(list[tuple[list[str], dict[str, object]]]):
    """What processes would have been started."""

    def __call__(self, parts: list[str], **options: object) -> None:
        self.append((parts, options))


def test_only_the_webserver_gets_the_policy() -> None:
    policy, started = make_policy("127.0.0.1", token=TOKEN), Started()
    start = dagster_dev._guarding(started, policy)  # type: ignore[arg-type]
    start(["python", "-m", "dagster_webserver", "--port", "3000"], pass_fds=[3])
    start(["python", "-m", "dagster._daemon", "run"], pass_fds=[4])
    (server, given), daemon = started
    assert server == ["python", "-m", dagster_dev.__name__, "webserver", "--port", "3000"]
    environment = given.pop("env")
    assert isinstance(environment, dict)
    assert take_policy(environment) == policy
    assert given == {"pass_fds": [3]}
    assert daemon == (["python", "-m", "dagster._daemon", "run"], {"pass_fds": [4]})
    assert TOKEN not in str(server)
    with pytest.raises(dagster_dev.DagsterVersionError, match="unknown process"):
        start(["python", "-m", "dagster_webserver2"])


def test_what_is_replaced_in_dagster_is_there() -> None:
    from dagster._cli import dev
    from dagster_webserver import cli

    assert callable(dev.open_ipc_subprocess)
    assert callable(cli.create_app_from_workspace_process_context)
    with pytest.raises(dagster_dev.DagsterVersionError, match="has no open_other"):
        dagster_dev._replace(dev, "open_other", lambda found: found)


def test_no_server_starts_without_a_policy(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != POLICY_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", dagster_dev.__name__, "webserver", "--port", "1"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode != 0
    assert "start this server with: stagecoach ui" in done.stderr


# ---------------------------------------------------------------- pages of runs, metrics


def raw(port: int, *lines: str) -> bytes:
    """The answer to a request that no client library would send."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(
            "\r\n".join(("GET / HTTP/1.1", *lines, "Connection: close", "", "")).encode()
        )
        return b"".join(iter(lambda: client.recv(65536), b""))


def status_of(port: int, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("kind", ["pages", "metrics"])
def test_the_servers_beside_the_ui_have_the_same_policy(kind: str, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "store"))
    store.write_bytes(run_page("r"), b"<p>page</p>")
    app: ASGIApp = pages_app(store)
    path, secret = "/runs/r", b"page"
    if kind == "metrics":
        app, path, secret = metrics_app(MetricsFolder(tmp_path / "values")), "/metrics", b"HELP"
    with BackgroundServer(app, WebPolicy(), "127.0.0.1", 0) as server:
        assert status_of(server.port, path) == 200
        assert status_of(server.port, path, Host="evil.example") == 403
        assert status_of(server.port, path, Origin="https://evil.example") == 403
        for lines in (["Host: localhost", "Host: evil.example"], [], ["Host: a b"], ["Host:"]):
            answer = raw(server.port, *lines)
            assert b" 400 " in answer.partition(b"\r\n")[0], answer
            assert secret not in answer
    with BackgroundServer(app, make_policy("127.0.0.1", token=TOKEN), "127.0.0.1", 0) as server:
        assert status_of(server.port, path) == 401
        assert status_of(server.port, path, Authorization=f"Bearer {TOKEN}") == 200
        assert status_of(server.port, path, Host="evil.example", **dict([BEARER])) == 403


def test_no_log_has_the_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with BackgroundServer(echo(), make_policy("127.0.0.1", token=TOKEN), "127.0.0.1", 0) as server:
        status_of(server.port, "/", Authorization=f"Bearer {TOKEN}")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        own = f"http://127.0.0.1:{server.port}"
        body = urlencode({"token": TOKEN})
        connection.request("POST", "/", body, {"Origin": own, "Content-Type": FORM[1]})
        assert connection.getresponse().status == 303
        connection.close()
    assert TOKEN not in caplog.text
