"""The server of the pages of runs: what it sends, and what it never does."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from stagecoach.host.pages_server import pages_app
from stagecoach.infra.storage.layout import run_page
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.web.policy import WebPolicy
from stagecoach.web.serving import BackgroundServer


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    store = LocalStore(str(tmp_path / "store"))
    store.write_bytes(run_page("abc-1.sales"), "<p>größer</p>".encode())
    store.write_bytes("secret.txt", b"secret")
    with BackgroundServer(pages_app(store), WebPolicy(), "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.port}"


def test_a_page_opens_in_the_browser(address: str) -> None:
    with urllib.request.urlopen(f"{address}/runs/abc-1.sales") as response:
        assert response.read().decode() == "<p>größer</p>"
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        # Neither a download nor a page that may run anything.
        assert "Content-Disposition" not in response.headers
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    ["/", "/runs/", "/runs/none", "/runs/..", "/runs/%2e%2e%2fsecret.txt", "/secret.txt"],
)
def test_nothing_else_is_served(address: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address}{path}")
    assert refused.value.code == 404
    assert b"secret" not in refused.value.read()
