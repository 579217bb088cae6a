"""Open the pages of Dagster's UI for the tutorial's project and wait until each is complete.

`screenshots.py` takes pictures of the pages, and `tests/acceptance/test_browser.py` checks their
visible text. Queries are planned as over large tables, which gives each of them several stages.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Error, Locator, Page, sync_playwright

from docs.tutorial_steps import FileStep, steps
from tests.acceptance.dagster_client import DagsterClient, Key, Run
from tests.acceptance.processes import (
    COMMAND,
    environment,
    free_port,
    kill_group,
    started,
    wait_until,
)

LOCATION = "shop"
QUERIES = ("sales", "revenue", "trend")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
WIDTH, HEIGHT = 1440, 760
# In place of the tutorial's own call: small data would be one stage a query.
_LARGE = """    catalog=HERE / "catalog.yaml",
    options=PlannerOptions(broadcast_bytes=0, force_distribution=True, num_partitions=2),
"""
_RANGE = "dagster/asset_partition_range_"


@dataclass(frozen=True, kw_only=True)
class Shop:
    """The project in a running UI.

    Args:
        url: The webserver.
        folder: The project.
        dagster: Its GraphQL.
        run: The run of the first week.
    """

    url: str
    folder: Path
    dagster: DagsterClient
    run: Run


@contextlib.contextmanager
def browser_page() -> Iterator[Page]:
    """A page of headless Chromium."""
    with sync_playwright() as playwright:
        browser: Browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser.new_page(device_scale_factor=1.5)
        browser.close()


@contextlib.contextmanager
def shop_ui(folder: Path) -> Iterator[Shop]:
    """The UI over the tutorial's project, after a run of the first week."""
    write_project(folder)
    with served(folder, LOCATION) as url:
        yield first_week(url, folder)


@contextlib.contextmanager
def served(folder: Path, location: str, *, seconds: float = 120, **variables: str) -> Iterator[str]:
    """The address of a UI over the project in a folder, when it has loaded the code location.

    Args:
        folder: Of the project.
        location: Its code location.
        seconds: How long that may take.
        variables: Further ones for the environment.
    """
    port = free_port()
    log = folder.with_suffix(".log")
    command = [*COMMAND, "ui", "--port", str(port)]
    given = {"STAGECOACH_MASTER": "local[2]", "STAGECOACH_PARALLELISM": "2", **variables}
    with started(command, folder, log, environment(**given)) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            loaded = DagsterClient(url, location).is_loaded
            wait_until(loaded, process, log, seconds=seconds, interval_seconds=0.3)
            yield url
        finally:
            # Not a kill at once: the watcher of the warm Spark ends it with the UI.
            os.kill(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            kill_group(process)


def first_week(url: str, folder: Path) -> Shop:
    """The project in a UI that has loaded it, after a run of the first week."""
    dagster = DagsterClient(url, LOCATION)
    run = run_days(dagster, "2024-01-01", "2024-01-07")
    return Shop(url=url, folder=folder, dagster=dagster, run=run)


def write_project(folder: Path) -> None:
    """The files of the tutorial as they are when the check fails: before `DISTINCT` and refunds."""
    folder.mkdir()
    for step in steps():
        is_later = isinstance(step, FileStep) and (
            "DISTINCT" in step.text or "refunds" in step.path
        )
        if isinstance(step, FileStep) and not is_later:
            step.write(folder)
    module = folder / "pipelines" / "definitions.py"
    text = module.read_text(encoding="utf-8")
    text = text.replace('    catalog=HERE / "catalog.yaml",\n', _LARGE)
    text = text.replace(
        "import stagecoach\n",
        "import stagecoach\nfrom stagecoach.planner.options import PlannerOptions\n",
    )
    module.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "make_data.py"], cwd=folder, check=True)


def run_days(dagster: DagsterClient, first: str, last: str) -> Run:
    """One run of all queries over a range of days; in the second week a check of `sales` fails."""
    keys: list[Key] = [key for query in QUERIES for key in dagster.asset_keys(query)]
    days: Mapping[str, str] = {f"{_RANGE}start": first, f"{_RANGE}end": last}
    return dagster.ended(dagster.launch("__ASSET_JOB", assets=keys, tags=days))


# ---------------------------------------------------------------- the pages


def open_graph(page: Page, shop: Shop, *, among_others: bool = False) -> None:
    """All three queries, the stages of each in a box; wide, so that the boxes have their texts.

    Args:
        page: Where.
        shop: The project.
        among_others: Whether the UI has other projects, too, which are then left out.
    """
    groups = ",".join(f"global@global:{name}" for name in (*QUERIES, "tables"))
    chosen = f"~code_location:{LOCATION}/" if among_others else ""
    address = f"{shop.url}/asset-groups{chosen}?expanded={groups}"
    _open(page, address, "50% filled", width=2500, height=620)


def open_catalog(page: Page, shop: Shop) -> None:
    """All assets, with what people say of them."""
    _open(page, f"{shop.url}/assets", "Orders with the region", height=640)


def open_run(page: Page, shop: Shop) -> None:
    """The timeline of a run."""
    _open(page, f"{shop.url}/runs/{shop.run.run_id}", "sales__stage_0", height=1150)


def open_partitions(page: Page, shop: Shop, asset: str) -> None:
    """Which partitions of an asset there are."""
    _open(page, f"{shop.url}/assets/{asset}?view=partitions", "2024-01-14")


def open_check(page: Page, shop: Shop, name: str) -> None:
    """What a check of `sales` found."""
    _open(page, f"{shop.url}/assets/sales?view=checks&checkDetail={name}", "Latest execution")


def open_automation(page: Page, shop: Shop) -> None:
    """Schedules and sensors."""
    _open(page, f"{shop.url}/automation", "run_sales_schedule", height=560)


def open_lineage_table(page: Page, shop: Shop, asset: str) -> None:
    """Where the columns of a query come from, as a table of the asset's metadata."""
    _open(page, f"{shop.url}/assets/{asset}?view=overview", "stagecoach/lineage")
    table = page.get_by_text("values come from").first
    table.wait_for(timeout=60_000)
    table.scroll_into_view_if_needed()


def open_run_page(page: Page, shop: Shop, query: str) -> None:
    """Our own page of the run of a query, by its link: stages, tasks, lineage."""
    page.goto(shop.run.made[query,]["stagecoach/page"])
    page.get_by_text("values come from").first.wait_for(timeout=60_000)


def lineage_drawing(page: Page) -> Locator:
    """The drawing of where columns come from, on the page of a run."""
    return page.locator("svg", has_text="rows").last


def _open(page: Page, address: str, text: str, *, width: int = WIDTH, height: int = HEIGHT) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(address, timeout=120_000)
    # The UI polls: idle is a hope, the text is the condition.
    with contextlib.suppress(Error):
        page.wait_for_load_state("networkidle", timeout=10_000)
    page.get_by_text(text).first.wait_for(timeout=120_000)
    loading = page.get_by_text("Loading")
    for _ in range(30):
        if not loading.count():
            break
        page.wait_for_timeout(500)
    page.wait_for_timeout(1_000)
