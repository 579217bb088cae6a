"""How many groups a HAVING is believed to let through."""

from __future__ import annotations

import pytest

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, DOUBLE, Field

ROWS, GROUPS = 1_000_000, 10_000


def groups(having: str, low: float | None = 0.0, high: float | None = 60.0) -> float:
    """Groups of about 100 rows for which `having` is believed to hold."""
    stats = TableStats(
        ROWS,
        16 * ROWS,
        1,
        {
            "k": ColumnStats(1, GROUPS, 0, GROUPS, 8.0),
            "x": ColumnStats(low, high, 0, None, 8.0),
        },
    )
    catalog = MappingCatalog([TableInfo("t", (Field("k", BIGINT), Field("x", DOUBLE)), stats)])
    graph = plan_query(f"SELECT k FROM t GROUP BY k HAVING {having}", catalog)
    return graph.head.estimated_rows


@pytest.mark.parametrize(
    ("aggregate", "mean", "far_above"),
    [("sum(x)", 3000, 6000), ("count(*)", 100, 200), ("avg(x)", 30, 40), ("sum(2)", 200, 400)],
)
def test_a_bound_lets_through_as_many_groups_as_lie_beyond_it(
    aggregate: str, mean: float, far_above: float
) -> None:
    assert groups(f"{aggregate} > {mean}") == pytest.approx(GROUPS / 2, rel=0.05)
    assert groups(f"{aggregate} > {far_above}") == pytest.approx(GROUPS / 100, rel=0.01)
    assert groups(f"{far_above} > {aggregate}") == pytest.approx(GROUPS * 0.99, rel=0.01)
    assert groups(f"{aggregate} BETWEEN {mean} AND {far_above}") == pytest.approx(
        GROUPS * 0.49, rel=0.05
    )


def test_a_deviation_from_the_mean_leaves_the_share_of_a_normal_distribution() -> None:
    # Of 100 rows in a group the number deviates by 10.
    assert groups("count(*) > 110") == pytest.approx(GROUPS * 0.159, rel=0.02)


@pytest.mark.parametrize(
    "having", ["sum(DISTINCT x) > 9000", "sum(x) FILTER (WHERE x > 1) > 9000", "max(x) > 9000"]
)
def test_what_no_moments_are_known_of_has_the_share_of_any_range(having: str) -> None:
    assert groups(having) == pytest.approx(GROUPS * 0.3, rel=0.01)


def test_a_column_without_bounds_has_the_share_of_any_range() -> None:
    assert groups("sum(x) > 9000", None, None) == pytest.approx(GROUPS * 0.3, rel=0.01)


@pytest.mark.parametrize("value", [0.0, -5.0, 1.7e308])
def test_bounds_without_or_with_an_immense_width(value: float) -> None:
    assert 0 <= groups("sum(x) > 3000", value, value) <= GROUPS
    assert 0 <= groups("avg(x) > 3000", -value, value) <= GROUPS
