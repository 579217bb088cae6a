"""Numbers as people read them."""

from __future__ import annotations

from stagecoach.planner.text.sizes import format_rows


def test_rows() -> None:
    assert format_rows(1) == "1 row"
    assert format_rows(1_200) == "1,200 rows"
    assert format_rows(1_200, is_estimate=True) == "≈ 1,200 rows"
    assert format_rows(1, is_estimate=True) == "≈ 1 rows"


def test_rows_below_one_another() -> None:
    numbers = [format_rows(1, width=7), format_rows(9_000, width=7)]
    assert numbers == ["      1 row ", "  9,000 rows"]
