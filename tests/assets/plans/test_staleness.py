"""Across queries: column lineage names the query that makes a table, and edits mark what is stale."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleCauseCategory
from dagster._core.loader import LoadingContextForTest

from stagecoach.assets import build_definitions
from stagecoach.assets.plans.planner import planner_of
from stagecoach.planner.options import PlannerOptions
from tests.assets.fakes import FakeRunner

OPTIONS = PlannerOptions(force_distribution=True, num_partitions=2, broadcast_bytes=0)
SALES = """SELECT s.shop, sum(s.amount) AS total
FROM sales s JOIN shops p ON s.shop = p.shop WHERE p.region > {region} GROUP BY s.shop"""
SHARE = "SELECT Shop AS store, total * 2 AS twice FROM by_shop"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two base tables, and a query over the result of another one."""
    for name, column in (("sales", "amount"), ("shops", "region")):
        (tmp_path / name).mkdir()
        table = pa.table({"shop": pa.array([1, 2]), column: pa.array([10, 20])})
        pq.write_table(table, tmp_path / name / "0.parquet")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "by_shop.sql").write_text(SALES.format(region=0))
    (tmp_path / "queries" / "share.sql").write_text(SHARE)
    (tmp_path / "catalog.yaml").write_text(
        "tables: {sales: {location: sales}, shops: {location: shops}}"
    )
    return tmp_path


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def build(project: Path) -> dg.Definitions:
    return build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        storage=project / "store",
        engine=dg.ResourceDefinition.hardcoded_resource(FakeRunner()),
        plan=planner_of(OPTIONS),
    )


def stale(definitions: dg.Definitions, instance: dg.DagsterInstance) -> dict[str, set[str]]:
    """The assets that are stale, each with the categories of its causes."""
    graph = definitions.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    causes = {
        key.to_user_string(): {c.category.value for c in resolver.get_stale_causes(key)}
        for key in graph.materializable_asset_keys
    }
    return {key: found for key, found in causes.items() if found}


def run(definitions: dg.Definitions, instance: dg.DagsterInstance, *queries: str) -> None:
    for query in queries:
        job = definitions.resolve_job_def(f"run_{query}")
        assert job.execute_in_process(instance=instance).success


def test_column_lineage_names_the_query_that_makes_the_table(project: Path) -> None:
    specs = {spec.key: spec for spec in build(project).resolve_all_asset_specs()}
    leaf = specs[dg.AssetKey("share")]
    assert [dep.asset_key for dep in leaf.deps] == [dg.AssetKey("by_shop")]
    found = leaf.metadata["dagster/column_lineage"].deps_by_column
    assert {name: [(d.asset_key.path, d.column_name) for d in deps] for name, deps in found.items()}
    made = {
        column.name
        for column in specs[dg.AssetKey("by_shop")].metadata["dagster/column_schema"].columns
    }
    for deps in found.values():
        assert {dep.asset_key for dep in deps} == {dg.AssetKey("by_shop")}
        assert {dep.column_name for dep in deps} <= made
    read = {
        dep.asset_key
        for spec in specs.values()
        if spec.key.path[0] == "by_shop"
        for deps in spec.metadata["dagster/column_lineage"].deps_by_column.values()
        for dep in deps
    }
    assert {dg.AssetKey("sales"), dg.AssetKey("shops")} <= read


def test_a_published_table_shows_as_one(project: Path) -> None:
    specs = {spec.key: spec for spec in build(project).resolve_all_asset_specs()}
    head, leaf = specs[dg.AssetKey("by_shop")], specs[dg.AssetKey(["by_shop", "stage_0"])]
    assert head.kinds == {"duckdb", "table", "parquet"}
    assert head.metadata["dagster/table_name"] == "by_shop"
    assert leaf.kinds == {"duckdb", "stage"}
    assert "dagster/table_name" not in leaf.metadata
    for spec in (head, leaf):
        assert spec.description is not None
        assert "→" in spec.description.splitlines()[0]


def test_an_edit_marks_exactly_the_changed_stages_stale(
    project: Path, instance: dg.DagsterInstance
) -> None:
    before = build(project)
    run(before, instance, "by_shop", "share")
    assert stale(before, instance) == {}
    (project / "queries" / "by_shop.sql").write_text(SALES.format(region=5))
    after = build(project)
    versions = [
        {spec.key: spec.code_version for spec in d.resolve_all_asset_specs()}
        for d in (before, after)
    ]
    assert versions[0].keys() == versions[1].keys()
    changed = {k.to_user_string() for k, v in versions[0].items() if v != versions[1][k]}
    assert len(changed) == 1
    assert stale(after, instance) == {key: {StaleCauseCategory.CODE.value} for key in changed}
    # A comment changes nothing, and a run makes all fresh again.
    (project / "queries" / "by_shop.sql").write_text("-- five\n" + SALES.format(region=5))
    assert stale(build(project), instance).keys() == changed
    run(after, instance, "by_shop", "share")
    assert stale(after, instance) == {}
