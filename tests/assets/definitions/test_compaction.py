"""Compaction as an asset: one for each deduplicated table, with what it did as metadata."""

from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from stagecoach.assets.definitions.location import build_definitions
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.formats.deduplicated.table_format import chunk_table

CATALOG = """
tables:
  sales.metrics: {kind: deduplicated, location: m, primary_key: [k]}
  empty: {kind: deduplicated, location: e, primary_key: [k]}
"""


@pytest.fixture
def defs(tmp_path: Path) -> dg.Definitions:
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    (tmp_path / "queries").mkdir()
    return build_definitions(
        queries=tmp_path / "queries",
        catalog=tmp_path / "catalog.yaml",
        storage=tmp_path / "storage",
    )


def test_each_table_has_an_asset_and_a_job(defs: dg.Definitions, tmp_path: Path) -> None:
    repository = defs.get_repository_def()
    keys = {key.to_user_string() for key in repository.asset_graph.materializable_asset_keys}
    assert keys == {"sales/metrics/compaction", "empty/compaction"}
    table = chunk_table(load_catalog(tmp_path / "catalog.yaml"), "sales.metrics")
    for value in (1, 2):
        table.append([pa.table({"k": [1, value], "v": [value, value]})])
    job = repository.get_job("compact_sales__metrics")
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance)
    (event,) = result.asset_materializations_for_node("sales__metrics__compaction")
    found = {key.removeprefix("stagecoach/"): value.value for key, value in event.metadata.items()}
    assert (found["chunks_before"], found["chunks_after"]) == (2, 1)
    assert (found["rows_before"], found["rows_after"]) == (4, 2)
    assert (found["overlap_share_before"], found["overlap_share_after"]) == (1.0, 0.0)
    assert found["merged_groups"] == 1
    assert len(table.read().chunks) == 1


def test_a_table_without_data_is_no_failure(defs: dg.Definitions) -> None:
    job = defs.get_repository_def().get_job("compact_empty")
    with dg.DagsterInstance.ephemeral() as instance:
        assert job.execute_in_process(instance=instance).success
