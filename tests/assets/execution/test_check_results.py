"""What a check reports in Dagster: which rows fail, how many they are, how many there are."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from stagecoach.assets.execution.check_runs import to_check_result
from stagecoach.assets.plans.check_sql import MAX_FAILING_ROWS
from stagecoach.assets.project.front_matter import parse_front_matter

KEY = dg.AssetKey("sales")
UNIQUE = "unique: [id]"
VALUES = "accepted_values: {column: kind, values: [a]}"
COUNT = "row_count: {min: 3}"


def result(check: str, **columns: list[Any]) -> dg.AssetCheckResult:
    text = f"/*\nchecks:\n  - {check}\n*/\nSELECT 1"
    (found,) = parse_front_matter(text).checks
    return to_check_result(found, KEY, pa.table(columns), "run-1")


@pytest.mark.parametrize(
    ("check", "columns", "failing", "text"),
    [
        ("not_null: [id]", {"id": []}, 0, "no row fails the check"),
        ("not_null: [id]", {"id": [None]}, 1, "1 row fails the check"),
        ("not_null: [id]", {"id": [None, None]}, 2, "2 rows fail the check"),
        (
            "not_null: [id]",
            {"id": [None] * MAX_FAILING_ROWS},
            1000,
            "at least 1,000 rows fail the check",
        ),
        (UNIQUE, {"id": [], "num_rows": []}, 0, "no row fails the check"),
        (UNIQUE, {"id": [7], "num_rows": [2]}, 2, "2 rows fail the check, of 1 key"),
        (UNIQUE, {"id": [7, 8], "num_rows": [2, 3]}, 5, "5 rows fail the check, of 2 keys"),
        (VALUES, {"kind": ["b"], "num_rows": [1]}, 1, "1 row fails the check, of 1 value"),
    ],
)
def test_rows_that_fail(check: str, columns: dict[str, Any], failing: int, text: str) -> None:
    found = result(check, **columns)
    assert found.description == text
    assert found.metadata["stagecoach/failing_rows"].value == failing
    assert found.passed == (not failing)
    assert ("stagecoach/sample" in found.metadata) == (failing > 0)
    assert ("stagecoach/replay" in found.metadata) == (failing > 0)


@pytest.mark.parametrize(
    ("counts", "text"),
    [([], "as many rows as there should be"), ([1], "1 row"), ([2, 0], "2 rows, 0 rows")],
)
def test_a_number_of_rows_is_no_row_that_fails(counts: list[int], text: str) -> None:
    found = result(COUNT, num_rows=counts)
    assert found.description == text
    assert set(found.metadata) == ({"stagecoach/rows"} if counts else set())
