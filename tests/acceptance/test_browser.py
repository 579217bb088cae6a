"""What a user sees in a real browser: graph, timeline, partitions, checks, lineage, automation.

The tutorial's project in the UI of all tests, two runs, headless Chromium.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install stagecoach[docs]")

from docs import ui_pages
from docs.ui_pages import CHROMIUM, QUERIES, Shop

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.acceptance.dagster_client import Run
    from tests.acceptance.running_ui import RunningUi

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.operations,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not CHROMIUM, reason="needs Chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def shop(ui: RunningUi) -> Shop:
    shop = ui_pages.first_week(ui.url, ui.shop)
    assert shop.run.status == "SUCCESS", shop.run.problem
    return shop


@pytest.fixture(scope="module")
def second_week(shop: Shop) -> Run:
    """The run in which a check fails."""
    return ui_pages.run_days(shop.dagster, "2024-01-08", "2024-01-14")


@pytest.fixture(scope="module")
def page(shop: Shop) -> Iterator[Page]:
    with ui_pages.browser_page() as page:
        yield page


def _comes(what: Locator) -> None:
    """Fail unless it is visible, or becomes so: the UI fills its pages bit by bit."""
    what.wait_for(timeout=60_000)


def test_the_graph_has_stages_in_groups(page: Page, shop: Shop) -> None:
    ui_pages.open_graph(page, shop, among_others=True)
    shown = page.locator("body").inner_text()
    for name in (*QUERIES, "orders", "shops", "stage_0", "DuckDB"):
        assert name in shown, shown
    assert "2 / 2 Passed" in shown


def test_leaves_overlap_in_the_timeline(page: Page, shop: Shop) -> None:
    ui_pages.open_run(page, shop)
    first, second = (_bar(page, f"sales__stage_{number}") for number in (0, 1))
    assert min(first[1], second[1]) > max(first[0], second[0]), (first, second)
    # Queries run one after the other.
    heads = [_bar(page, name) for name in QUERIES]
    assert all(before[1] <= after[0] + 1 for before, after in pairwise(heads))


def _bar(page: Page, step: str) -> tuple[float, float]:
    """Where the bar of a step begins and ends, in pixels."""
    bar = page.locator(f'.chart-element.box[data-tooltip="{step}"]')
    _comes(bar)
    box = bar.bounding_box()
    assert box is not None, step
    assert box["width"] > 0
    return box["x"], box["x"] + box["width"]


def test_the_partition_grid(page: Page, shop: Shop, second_week: Run) -> None:
    assert second_week.status == "FAILURE"
    for asset in ("sales", "trend"):  # what fails its checks is not published
        ui_pages.open_partitions(page, shop, asset)
        _comes(page.get_by_text("Materialized (7)"))
        _comes(page.get_by_text("Failed (7)"))
    _comes(page.get_by_text("2024-01-07", exact=True).first)


def test_checks_that_passed_and_failed(page: Page, shop: Shop, second_week: Run) -> None:
    assert not second_week.checks["unique_order_id"]["success"]
    ui_pages.open_check(page, shop, "unique_order_id")
    _comes(page.get_by_text("6 rows fail the check, of 3 keys"))
    _comes(page.get_by_text("blocking").first)
    ui_pages.open_check(page, shop, "not_null_region")
    _comes(page.get_by_text("no row fails the check"))
    _comes(page.get_by_text("Passed").first)


def test_column_lineage_as_a_table(page: Page, shop: Shop) -> None:
    ui_pages.open_lineage_table(page, shop, "sales")
    rows = page.locator("tr", has_text="amount").all_inner_texts()
    assert any("orders.cents" in row for row in rows), rows


def test_column_lineage_drawn_on_the_page_of_the_run(page: Page, shop: Shop) -> None:
    ui_pages.open_run_page(page, shop, "sales")
    drawing = ui_pages.lineage_drawing(page)
    _comes(drawing)
    shown = drawing.text_content() or ""
    for name in ("orders", "cents", "shops", "region", "amount"):
        assert name in shown, shown


def test_schedule_and_sensor_are_listed(page: Page, shop: Shop) -> None:
    ui_pages.open_automation(page, shop)
    _comes(page.get_by_text("Scheduled At 06:00 AM"))
    _comes(page.get_by_text("stagecoach_on_upstream_change").first)
