"""Take pictures of all pages of a UI that is full: 100 queries, 1,000 stages, runs of every kind.

Three runs that succeeded, three that failed and one that is still running, in the project of
`large_project.py`. The pictures go to `build/pictures/`, for people who look whether each page can
be read; what must be on a page is checked here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from playwright.sync_api import Error, Page

from docs import large_project as project
from docs.ui_pages import browser_page, served
from stagecoach.web.login import login_page
from tests.acceptance.dagster_client import DagsterClient, Run

_WIDTH, _HEIGHT, _TALL = 1440, 900, 1500
_DAY = "2024-01-05"
_LOAD_SECONDS = 300.0
_BEGIN_SECONDS = 120.0
_SHOWN_SECONDS = 40


@dataclass(frozen=True, kw_only=True)
class LargeUi:
    """The UI with its runs.

    Args:
        url: The webserver.
        runs: Those that have ended, by query.
        running: Id of the one that goes on.
    """

    url: str
    runs: Mapping[str, Run]
    running: str


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A page of the UI.

    Args:
        name: Of the picture.
        path: Of the page.
        texts: What must be visible; the last is waited for, too.
        height: Of the window.
    """

    name: str
    path: str
    texts: tuple[str, ...] = field(default=())
    height: int = _HEIGHT


def take_pictures(place: Path, images: Path) -> None:
    """Start the UI over the project, wait for its runs and photograph every page.

    Args:
        place: An empty folder for the project and its state.
        images: Where the pictures go.

    Raises:
        AssertionError: A run did not end as it should, or a page lacks what must be on it.
    """
    images.mkdir(parents=True, exist_ok=True)
    with _large_ui(place) as ui, browser_page() as page:
        missing: list[str] = []
        for shown in _pages(ui):
            missing += _open(page, f"{ui.url}{shown.path}", shown)
            _shoot(page, images / f"dagster-{shown.name}.png")
        assert _status(ui) == "STARTED", "the run in progress ended before its pictures"
        for scheme in ("light", "dark"):
            _own_pages(page, ui, images, scheme)
    assert not missing, "\n".join(missing)


def _own_pages(page: Page, ui: LargeUi, images: Path, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 560, "height": 420})
    page.set_content(login_page())
    _shoot(page, images / f"own-login-{scheme}.png")
    page.set_viewport_size({"width": 1180, "height": _HEIGHT})
    for query in (project.GOOD[0], *project.FAILING):
        page.goto(ui.runs[query].page)
        page.get_by_text("Timeline").first.wait_for(timeout=30_000)
        page.screenshot(path=images / f"own-run-{query}-{scheme}.png", full_page=True)
        print(images / f"own-run-{query}-{scheme}.png")


def _pages(ui: LargeUi) -> Iterator[Shown]:
    location = f"/locations/{project.LOCATION}"
    good, *_ = project.GOOD
    failed = project.FAILING[0]
    yield Shown(name="overview", path="/overview", texts=(f"run_{good}",))
    yield Shown(name="runs", path="/runs", texts=("Failure", "Started", f"run_{good}"))
    yield Shown(name="runs-failed", path="/runs?q%5B0%5D=status%3AFAILURE", texts=("Failure",))
    for query in (good, *project.FAILING):
        run = ui.runs[query]
        yield Shown(
            name=f"run-{query}",
            path=f"/runs/{run.run_id}",
            texts=(f"{query}__stage_",),
            height=_TALL,
        )
    yield Shown(
        name="run-in-progress",
        path=f"/runs/{ui.running}",
        texts=(f"{project.WAITING}__stage_", "Executing (1)"),
        height=_TALL,
    )
    yield Shown(name="catalog", path="/assets", texts=("basket_size",))
    yield Shown(
        name="catalog-results",
        path="/assets?asset-selection=not%20kind%3A%22stage%22",
        texts=("basket_size",),
    )
    yield Shown(
        name="all-groups", path="/asset-groups", texts=("tables", "Materialize all (1,000)")
    )
    for query in (good, failed, project.WAITING):
        group = f"{location}/asset-groups/{query}"
        yield Shown(name=f"group-{query}", path=f"{group}/lineage", texts=("stage_0",))
    yield Shown(name="group-list", path=f"{location}/asset-groups/{good}/list", texts=("stage_0",))
    for view in ("overview", "events", "checks", "lineage"):
        yield Shown(name=f"result-{view}", path=f"/assets/{good}?view={view}", texts=(good,))
    yield Shown(
        name="result-partitions",
        path=f"/assets/{project.PARTITIONED}?view=partitions",
        texts=(_DAY,),
    )
    for view in ("overview", "events"):
        path = f"/assets/{good}/stage_5?view={view}"
        yield Shown(name=f"stage-{view}", path=path, texts=("stage_5",), height=_TALL)
    yield Shown(name="result-failed", path=f"/assets/{failed}?view=overview", texts=("Failed",))
    yield Shown(
        name="check-failed",
        path=f"/assets/{project.FAILING[1]}?view=checks&checkDetail=row_count",
        texts=("row_count",),
    )
    yield Shown(name="table", path="/assets/orders?view=overview", texts=("orders",))
    yield Shown(name="jobs", path="/jobs", texts=("run_basket_size",))
    yield Shown(name="job", path=f"{location}/jobs/run_{good}", texts=("stage_0",))
    yield Shown(name="launchpad", path=f"{location}/jobs/run_{good}/playground", texts=("Launch",))
    yield Shown(name="automation", path="/automation", texts=("run_revenue_by_brand_schedule",))
    yield Shown(name="deployment", path="/deployment/locations", texts=(project.LOCATION,))
    yield Shown(name="location", path=f"{location}/assets", texts=("basket_size",))
    yield Shown(name="daemons", path="/deployment/daemons", texts=("Running",))
    yield Shown(name="concurrency", path="/deployment/concurrency", texts=("Pools",))
    yield Shown(name="configuration", path="/deployment/config", texts=("run_launcher",))
    yield Shown(name="backfills", path="/runs?view=backfills", texts=("Backfills",))


@contextlib.contextmanager
def _large_ui(folder: Path) -> Iterator[LargeUi]:
    folder.mkdir()
    project.write_project(folder)
    variables = {"STAGECOACH_MIN_TASK_BYTES": "0"}
    with served(folder, project.LOCATION, seconds=_LOAD_SECONDS, **variables) as url:
        try:
            yield _with_runs(url, DagsterClient(url, project.LOCATION))
        finally:
            (folder / "waiting").unlink()


def _with_runs(url: str, dagster: DagsterClient) -> LargeUi:
    runs: dict[str, Run] = {}
    for query in (*project.GOOD, *project.FAILING):
        day = _DAY if query == project.PARTITIONED else None
        runs[query] = dagster.ended(dagster.launch(f"run_{query}", partition=day))
        expected = "FAILURE" if query in project.FAILING else "SUCCESS"
        assert runs[query].status == expected, f"{query}: {runs[query].problem}"
    running = dagster.launch(f"run_{project.WAITING}")

    def has_made_a_stage() -> bool:
        return bool(dagster.run(running).made)

    dagster.wait(has_made_a_stage, "the first stage of the run in progress", _BEGIN_SECONDS)
    return LargeUi(url=url, runs=runs, running=running)


def _status(ui: LargeUi) -> str:
    return DagsterClient(ui.url, project.LOCATION).status(ui.running)


def _open(page: Page, address: str, shown: Shown) -> Iterator[str]:
    """Open a page and wait until it is complete; what it lacks."""
    page.set_viewport_size({"width": _WIDTH, "height": shown.height})
    page.goto(address, timeout=120_000)
    # The UI polls: idle is a hope, the texts are the condition.
    with contextlib.suppress(Error):
        page.wait_for_load_state("networkidle", timeout=3_000)
    for text in shown.texts:
        try:
            page.get_by_text(text).first.wait_for(timeout=_SHOWN_SECONDS * 1000)
        except Error:
            yield f"{shown.name} does not show {text!r}"
    loading = page.get_by_text(re.compile("Loading|fetching statuses"))
    for _ in range(30):
        if not loading.count():
            break
        page.wait_for_timeout(500)
    page.wait_for_timeout(1_000)


def _shoot(page: Page, path: Path) -> None:
    page.screenshot(path=path)
    print(path)
