"""Jobs of queries are those that Dagster would make, and are made without a look at other assets."""

from typing import Any
from unittest import mock

import dagster as dg
import pytest

from stagecoach.assets.definitions.query_jobs import QueryJob, query_job
from stagecoach.assets.execution.executor import AssetJob, stagecoach_threads

DAYS = dg.DailyPartitionsDefinition("2024-01-01")


def location(jobs: list[AssetJob]) -> dg.Definitions:
    """Two chains of assets, the second of which reads the first, and a base table."""

    def stage(name: str, *deps: str, partitions: dg.PartitionsDefinition[str] | None = DAYS) -> Any:
        @dg.multi_asset(
            name=name,
            specs=[dg.AssetSpec(name, deps=list(deps), partitions_def=partitions)],
            required_resource_keys={"engine"},
        )
        def run(context: dg.AssetExecutionContext) -> None: ...

        return run

    @dg.multi_asset_check(
        name="checks", specs=[dg.AssetCheckSpec(n, asset="a1", blocking=True) for n in "xy"]
    )
    def check(context: dg.AssetCheckExecutionContext) -> Any:
        for name in "xy":
            yield dg.AssetCheckResult(asset_key="a1", check_name=name, passed=True)

    return dg.Definitions(
        assets=[
            stage("a0", "table"), stage("a1", "a0"), stage("b0", "a1"), stage("b1", "b0"),
            stage("c0", partitions=None), dg.AssetSpec("table"),
        ],
        asset_checks=[check],
        jobs=jobs,
        resources={"engine": dg.ResourceDefinition.hardcoded_resource(1)},
        executor=stagecoach_threads,
    )  # fmt: skip


def keys(*names: str) -> list[dg.AssetKey]:
    return [dg.AssetKey(name) for name in names]


CHECKS = [dg.AssetCheckKey(dg.AssetKey("a1"), name) for name in "xy"]


def job(name: str, *assets: str, checks: list[dg.AssetCheckKey] | None = None) -> AssetJob:
    return query_job(
        name,
        assets=keys(*assets),
        checks=checks or (),
        description="made",
        executor=stagecoach_threads,
    )


@pytest.mark.parametrize(
    ("assets", "checks"),
    [(("a0", "a1"), CHECKS), (("a0", "a1"), CHECKS[:0]), (("b0", "b1"), []), (("c0",), [])],
    ids=["checks", "no checks", "reader", "alone"],
)
def test_a_job_is_as_dagster_makes_it(
    assets: tuple[str, ...], checks: list[dg.AssetCheckKey]
) -> None:
    selection: dg.AssetSelection = dg.AssetSelection.assets(*keys(*assets))
    if checks:
        selection = selection | dg.AssetSelection.checks(*checks)
    plain = dg.define_asset_job("plain", selection, executor_def=stagecoach_threads)
    found = location([job("made", *assets, checks=checks), plain])
    made, expected = found.resolve_job_def("made"), found.resolve_job_def("plain")
    assert made.graph.dependencies == expected.graph.dependencies
    assert {n.name for n in made.graph.nodes} == {n.name for n in expected.graph.nodes}
    assert made.asset_layer.selected_asset_keys == expected.asset_layer.selected_asset_keys
    assert made.asset_layer.asset_graph.asset_check_keys == set(
        expected.asset_layer.asset_graph.asset_check_keys
    )
    assert made.partitions_def == expected.partitions_def
    assert made.executor_def is stagecoach_threads
    assert made.description == "made"


def test_a_run_of_a_job_may_select_any_asset() -> None:
    made = location([job("made", "a0", "a1", checks=CHECKS)]).resolve_job_def("made")
    part = made.get_subset(asset_selection={dg.AssetKey("a1")})
    assert part.asset_layer.selected_asset_keys == {dg.AssetKey("a1")}
    other = made.get_subset(asset_selection={dg.AssetKey("b1")})
    assert other.asset_layer.selected_asset_keys == {dg.AssetKey("b1")}


def test_a_job_runs_its_checks() -> None:
    found = location([job("made", "a0", "a1", checks=CHECKS)])
    done = found.resolve_job_def("made").execute_in_process(partition_key="2024-01-02")
    assert done.success
    assert {e.check_name for e in done.get_asset_check_evaluations()} == {"x", "y"}


def test_only_the_assets_around_a_job_are_looked_at() -> None:
    found = location([job("made", "b0", "b1")])
    seen: list[set[str]] = []
    original = AssetJob.resolve

    def resolve(self: AssetJob, asset_graph: Any, *args: Any, **more: Any) -> dg.JobDefinition:
        seen.append({key.to_user_string() for key in asset_graph.get_all_asset_keys()})
        return original(self, asset_graph, *args, **more)

    with mock.patch.object(AssetJob, "resolve", resolve):
        assert isinstance(found.resolve_job_def("made"), dg.JobDefinition)
    assert seen == [{"a1", "b0", "b1"}]


def test_a_copy_stays_a_job_of_a_query() -> None:
    copy = job("made", "a0").with_metadata({"a": 1})
    assert isinstance(copy, QueryJob)
    assert copy.metadata == {"a": 1}
