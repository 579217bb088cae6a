"""A stage's metadata in events of runs: the same with Dagster and without it."""

import dagster as dg
import pytest

from stagecoach.assets.report.metadata import StageMetadata, plain_value
from stagecoach.planner.types import BIGINT, STRING, Field

FULL = StageMetadata(
    rows=3,
    bytes=1188,
    skew=1.23456,
    seconds=0.0001234,
    engine="duckdb",
    reused=True,
    saved_seconds=15.98612,
    fingerprint="ab",
    uri="/store/shuffle/ab",
    columns=(Field("k", BIGINT), Field("k", STRING), Field("", STRING)),
    decisions="- **engine** duckdb",
    table_versions={"orders": 4},
)


@pytest.mark.parametrize("metadata", [FULL, StageMetadata(), StageMetadata(deferred="no")])
def test_an_event_without_dagster_has_what_dagster_would_keep(metadata: StageMetadata) -> None:
    def plain(value: dg.MetadataValue[object]) -> object:
        if isinstance(value.value, dg.TableSchema):
            return [{"name": c.name, "type": c.type} for c in value.value.columns]
        return plain_value(value.value)

    kept = {key: plain(value) for key, value in metadata.to_dagster().items()}
    told = metadata.to_event()
    assert told == kept
    assert list(told) == list(kept)


def test_numbers_are_rounded_and_names_are_unique() -> None:
    told = FULL.to_event()
    assert told["stagecoach/skew"] == 1.235
    assert told["stagecoach/seconds"] == 0.000123
    assert told["dagster/column_schema"] == [
        {"name": "k", "type": "bigint"},
        {"name": "k (1)", "type": "string"},
        {"name": "column 2", "type": "string"},
    ]
