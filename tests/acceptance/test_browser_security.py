"""A UI with a token in a real browser: its login works, and pages of other sites get nowhere.

That the UI without a token works as before is what `test_browser.py` shows. There is no Spark here:
the code location has one asset.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install stagecoach[docs]")

from docs import ui_pages
from docs.ui_pages import CHROMIUM
from tests.acceptance.processes import (
    COMMAND,
    environment,
    free_port,
    kill_group,
    started,
    wait_until,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.operations,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not CHROMIUM, reason="needs Chromium: apt-get install chromium"),
]

TOKEN = "correct-horse-battery"
_DEFINITIONS = """import dagster as dg

@dg.asset
def hello():
    pass

defs = dg.Definitions(assets=[hello])
"""
_COUNT = "{ assetNodes { assetMaterializations { runId } assetKey { path } } }"


@dataclass(frozen=True, kw_only=True)
class TokenUi:
    """A UI that needs a token.

    Args:
        url: Its webserver.
        pages_url: The server of run pages beside it.
        log: All that its processes have printed.
    """

    url: str
    pages_url: str
    log: Path

    def ask(self, document: str) -> Any:
        """The data that GraphQL returns to a program with the token."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        body = json.dumps({"query": document}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["data"]

    def is_loaded(self) -> bool:
        """Whether it serves its code location."""
        try:
            return bool(self.ask(_COUNT)["assetNodes"])
        except (OSError, KeyError, TypeError):
            return False

    def materializations(self) -> int:
        """How often the asset was reported as materialized."""
        return len(self.ask(_COUNT)["assetNodes"][0]["assetMaterializations"])


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenUi]:
    folder = tmp_path_factory.mktemp("token-ui")
    (folder / "one_asset.py").write_text(_DEFINITIONS)
    port, pages, log = free_port(), free_port(), folder / "ui.log"
    options = ["--no-warm", "--module", "one_asset", "--port", str(port), "--debug"]
    command = [*COMMAND, "ui", *options, "--pages-port", str(pages)]
    variables = environment(DAGSTER_HOME=str(folder / "home"), STAGECOACH_UI_TOKEN=TOKEN)
    with started(command, folder, log, variables) as process:
        # Another site for the browser than 127.0.0.1, where the foreign page is.
        url, pages_url = f"http://localhost:{port}", f"http://localhost:{pages}"
        ui = TokenUi(url=url, pages_url=pages_url, log=log)
        wait_until(ui.is_loaded, process, log, interval_seconds=0.3)
        yield ui
        os.kill(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        kill_group(process)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with ui_pages.browser_page() as page:
        yield page


@pytest.fixture(scope="module")
def logged_in(page: Page, ui: TokenUi) -> Page:
    """A browser that has logged in, at the page that it has asked for."""
    page.goto(f"{ui.url}/assets?view=list")
    page.get_by_label("Token").fill("not-the-token-at-all")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("This is not the token.").wait_for()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("hello").first.wait_for(timeout=60_000)
    return page


@pytest.fixture(scope="module", params=["127.0.0.1", "localhost"])
def foreign(request: pytest.FixtureRequest) -> Iterator[str]:
    """Another site, and another port of the same one, to which the browser sends the cookie."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>foreign</title>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{request.param}:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_login_opens_the_ui_and_the_pages_of_runs(logged_in: Page, ui: TokenUi) -> None:
    assert logged_in.url == f"{ui.url}/assets?view=list"
    (cookie,) = logged_in.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert TOKEN not in str(cookie)
    # The live connection of the UI, with the cookie.
    with logged_in.expect_websocket() as socket:
        logged_in.goto(f"{ui.url}/runs")
    socket.value.wait_for_event("framereceived", timeout=60_000)
    logged_in.goto(f"{ui.pages_url}/runs/none")
    assert "this run has no page" in logged_in.inner_text("body")


def test_a_link_on_another_site_opens_the_ui_without_a_login(
    logged_in: Page, ui: TokenUi, foreign: str
) -> None:
    logged_in.goto(foreign)
    logged_in.evaluate("address => { document.location.href = address }", f"{ui.url}/assets")
    logged_in.get_by_text("hello").first.wait_for(timeout=60_000)


def test_no_other_page_can_frame_the_ui(logged_in: Page, ui: TokenUi, foreign: str) -> None:
    for address, is_shown in ((f"{foreign}/other", True), (f"{ui.url}/assets", False)):
        logged_in.goto(foreign)
        logged_in.evaluate(
            """address => new Promise(done => {
                 const frame = document.createElement('iframe');
                 frame.onload = done; frame.src = address; document.body.append(frame);
               })""",
            address,
        )
        frame = logged_in.frames[-1]
        assert (frame.url == address) is is_shown, frame.url
        assert (frame.title() == "foreign") is is_shown


def test_no_other_page_can_act_as_the_user(logged_in: Page, ui: TokenUi, foreign: str) -> None:
    before = ui.materializations()
    report = f"{ui.url}/report_asset_materialization/hello"
    send = "([address, options]) => fetch(address, options).then(() => 'sent', () => 'refused')"
    logged_in.goto(foreign)
    for options in (
        {"method": "POST", "mode": "no-cors", "credentials": "include"},
        {"method": "POST", "mode": "no-cors", "credentials": "include", "body": "{}"},
    ):
        logged_in.evaluate(send, [report, options])  # the answer is kept from the page
    # With JSON, the browser asks for permission first and gets none.
    json_options = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": "{}"}
    assert logged_in.evaluate(send, [report, json_options]) == "refused"
    opened = logged_in.evaluate(
        """address => new Promise(done => {
             const socket = new WebSocket(address, 'graphql-ws');
             socket.onopen = () => done('open'); socket.onerror = () => done('refused');
           })""",
        ui.url.replace("http", "ws") + "/graphql",
    )
    assert opened == "refused"
    assert ui.materializations() == before


def test_our_own_page_can(logged_in: Page, ui: TokenUi) -> None:
    before = ui.materializations()
    logged_in.goto(f"{ui.url}/assets")
    options = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": "{}"}
    send = "([address, options]) => fetch(address, options).then(answer => answer.status)"
    assert logged_in.evaluate(send, ["/report_asset_materialization/hello", options]) == 200
    assert ui.materializations() == before + 1


def test_neither_log_nor_process_list_has_the_token(logged_in: Page, ui: TokenUi) -> None:
    assert TOKEN not in ui.log.read_text(errors="replace")
    listed = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True)
    assert TOKEN not in listed.stdout
