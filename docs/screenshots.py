"""Take the pictures in docs/images/: `python -m docs.screenshots` (or `make screenshots`).

Starts the UI with temporary state, runs query 3 over generated TPC-H data, and photographs the
asset graph and the finished run with headless Chromium. Then does the same for the pages of our
own, that of `explain --analyze` and that of a login, and for the steps of the tutorial. Last it
photographs all pages of a UI that is full, for people to look at: into `build/pictures/`. The
arguments `analysis`, `tutorial` and `large` limit it to one of these. Needs Chromium
(`apt-get install chromium`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page, TimeoutError, sync_playwright

import stagecoach
from docs import large_pages, ui_pages
from stagecoach.assets.report.page import analysis_page
from stagecoach.tpch import generate, write_catalog
from stagecoach.web.login import login_page
from tests.acceptance.dagster_client import DagsterClient

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
LARGE_IMAGES = ROOT / "build" / "pictures"
QUERY = "q03"
WARMING = "q12"
ANALYZED = "q03"
SCALE_FACTOR = 0.1
LOCATION = "pipelines"
WIDTH, HEIGHT = 1440, 760
# The graph without what is around it; see `ui_pages.open_graph`.
_GRAPH: FloatRect = {"x": 560, "y": 112, "width": 1890, "height": 410}
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
# Small data would be one stage on one task; the pictures are to show a plan as for large data.
MODULE = """\
from pathlib import Path

from stagecoach.assets import build_definitions, load_project
from stagecoach.assets.execution.resources import EngineResource
from stagecoach.planner.options import PlannerOptions

project = load_project(Path({queries!r}))
defs = build_definitions(
    queries=project,
    catalog={catalog!r},
    storage={storage!r},
    options=PlannerOptions(broadcast_bytes=0, force_distribution=True, num_partitions=4),
)
"""


def main() -> None:
    """Take all pictures."""
    if not CHROMIUM:
        sys.exit("Chromium is not installed; run: apt-get install chromium (or set CHROMIUM)")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stagecoach-ui-") as folder:
        place = Path(folder)
        if sys.argv[1:] == ["large"]:
            large_pages.take_pictures(place / "large", LARGE_IMAGES)
            return
        if sys.argv[1:] in ([], ["tutorial"]):
            _tutorial(place)
        if sys.argv[1:] == ["tutorial"]:
            return
        data = Path(os.environ.get("STAGECOACH_TPCH_DATA") or place / "tpch")
        generate(data, SCALE_FACTOR)
        write_catalog(place / "catalog.yaml", data)
        html = _analyze(place)
        with _page(WIDTH) as page:
            page.set_viewport_size({"width": 560, "height": 420})
            page.set_content(login_page())
            _shoot(page, "login.png")
            page.set_viewport_size({"width": 1180, "height": 1330})
            page.goto(html.as_uri())
            _shoot(page, "analysis.png")
        if sys.argv[1:] == ["analysis"]:
            return
        with _server(place) as url:
            run_id = _run(url)
            with _page(WIDTH) as page:
                _take(page, url, run_id)
        large_pages.take_pictures(place / "large", LARGE_IMAGES)


@contextlib.contextmanager
def _page(width: int) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser.new_page(viewport={"width": width, "height": HEIGHT}, device_scale_factor=1.5)
        browser.close()


def _analyze(place: Path) -> Path:
    """The page of `explain --analyze --html`, of a run whose stages have several tasks."""
    settings = {"target_task_bytes": 2_000_000, "min_task_bytes": 1}
    options = {"force_distribution": True, "broadcast_bytes": 0, "num_partitions": 4}
    sql = (ROOT / "pipelines" / "queries" / f"{ANALYZED}.sql").read_text(encoding="utf-8")
    with stagecoach.connect(
        place / "catalog.yaml", place / "analyzed", settings=settings, options=options
    ) as session:
        # The run before starts Spark and its workers.
        session.query(sql, name=ANALYZED)
        analysis = session.analyze(sql, name=ANALYZED, fresh=True)
    html = place / f"{ANALYZED}.html"
    written_at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(analysis.started_at))
    html.write_text(analysis_page(analysis, written_at), encoding="utf-8")
    return html


def _take(page: Page, url: str, run_id: str) -> None:
    group = f"{url}/locations/{LOCATION}/asset-groups/{QUERY}/lineage"
    _open(page, group, QUERY)
    page.get_by_text("Hide navigation").click()
    page.wait_for_timeout(500)
    _open(page, group, "stage_0")
    _shoot(page, "asset-graph.png")
    # Taller: the step filter floats over the lower end of the chart.
    page.set_viewport_size({"width": WIDTH, "height": 1150})
    _open(page, f"{url}/runs/{run_id}", "stage_0")
    _shoot(page, "run.png")
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    _open(page, f"{url}/assets/{QUERY}/stage_0?view=overview", "stage_0")
    _shoot(page, "stage.png")


def _tutorial(place: Path) -> None:
    """The three queries of the tutorial: graph, automation, lineage, checks, partitions."""
    with ui_pages.shop_ui(place / "shop") as shop, ui_pages.browser_page() as page:
        ui_pages.open_graph(page, shop)
        _shoot(page, "queries.png", clip=_GRAPH)
        ui_pages.open_catalog(page, shop)
        _shoot(page, "catalog.png")
        ui_pages.open_automation(page, shop)
        _shoot(page, "automation.png")
        ui_pages.open_run_page(page, shop, "sales")
        _shoot(ui_pages.lineage_drawing(page), "lineage.png")
        ui_pages.run_days(shop.dagster, "2024-01-08", "2024-01-14")
        ui_pages.open_check(page, shop, "unique_order_id")
        _shoot(page, "check-failed.png")
        ui_pages.open_partitions(page, shop, "trend")
        _shoot(page, "partitions.png")


def _open(page: Page, address: str, text: str) -> None:
    page.goto(address)
    # The UI polls: idle is a hope, the text is the condition.
    with contextlib.suppress(TimeoutError):
        page.wait_for_load_state("networkidle", timeout=20_000)
    page.get_by_text(text).first.wait_for(timeout=30_000)
    loading = page.get_by_text("Loading")
    for _ in range(30):
        if not loading.count():
            break
        page.wait_for_timeout(500)
    page.wait_for_timeout(1_500)


def _shoot(shown: Page | Locator, name: str, clip: FloatRect | None = None) -> None:
    if isinstance(shown, Page) and clip is not None:
        shown.screenshot(path=IMAGES / name, clip=clip)
    else:
        shown.screenshot(path=IMAGES / name)
    print(IMAGES / name)


@contextlib.contextmanager
def _server(place: Path) -> Iterator[str]:
    """The UI of the query and of another; yields its address."""
    folder = place / "queries_ui"
    (folder / "queries").mkdir(parents=True)
    for name in (QUERY, WARMING):
        shutil.copy(ROOT / "pipelines" / "queries" / f"{name}.sql", folder / "queries")
    module = MODULE.format(
        queries=str(folder / "queries"),
        catalog=str(place / "catalog.yaml"),
        storage=str(place / "storage"),
    )
    (folder / "pictures.py").write_text(module, encoding="utf-8")
    (folder / "workspace.yaml").write_text(
        f"load_from:\n  - python_file:\n      relative_path: pictures.py\n"
        f"      location_name: {LOCATION}\n",
        encoding="utf-8",
    )
    with ui_pages.served(folder, LOCATION) as url:
        yield url


def _run(url: str) -> str:
    """Run the query and return the run's id; the run before has the warm Spark start workers."""
    dagster = DagsterClient(url, LOCATION)
    for name in (WARMING, QUERY):
        run = dagster.ended(dagster.launch(f"run_{name}"))
        if run.status != "SUCCESS":
            sys.exit(f"the run of {name} ended as {run.status}: {run.problem}")
    return run.run_id


if __name__ == "__main__":
    main()
