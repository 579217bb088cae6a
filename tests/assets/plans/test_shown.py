"""What is shown of a plan is kept in its file, and its operators are read only when they are needed."""

import json
import pickle
import re
import threading
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets import StageProps, StageTranslator, build_definitions
from stagecoach.assets.plans.files import CompiledPlan, compile_query, parse_plan, plan_file
from stagecoach.assets.plans.shown import ShownPlan
from stagecoach.assets.project.queries import Query, load_project
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.errors import GraphFormatError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import PhysicalPlan
from stagecoach.planner.plan.serde import dump_graph, seal
from stagecoach.planner.plan.stages import Stage, StageGraph
from tests.assets.fakes import FakeRunner
from tests.planner.tpch import FORCED, NAMES, tpch_graph

OPTIONS = PlannerOptions(force_distribution=True, num_partitions=2, broadcast_bytes=0)
FALLBACK = (
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r"
)


def is_read(stage: Stage) -> bool:
    return "fragment" in vars(stage)


def compiled(graph: StageGraph) -> CompiledPlan:
    return CompiledPlan(graph=graph, notes={"options": {}}, shown=ShownPlan(graph))


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", NAMES)
def test_operators_are_read_when_they_are_asked_for(name: str) -> None:
    graph = tpch_graph(name, FORCED)
    text = compiled(graph).to_text()
    found = parse_plan(text, later=True)
    assert not any(is_read(stage) for stage in found.graph.stages)
    assert [(s.inputs, s.tables) for s in found.graph.stages] == [
        (s.inputs, s.tables) for s in graph.stages
    ]
    assert found.shown is not None
    assert found.shown.to_json() == ShownPlan(graph).to_json()
    for stage in graph.stages:
        assert found.shown.stage(stage.stage_id) == ShownPlan(graph).stage(stage.stage_id)
    assert not any(is_read(stage) for stage in found.graph.stages)
    # One stage after the other, and what follows from operators with them.
    last = found.graph.stages[-1]
    assert last.leaves == graph.head.leaves
    assert [is_read(stage) for stage in found.graph.stages[:-1]] == [False] * (
        len(graph.stages) - 1
    )
    assert found.graph == graph
    assert found.graph.plan_hash == graph.plan_hash
    assert dump_graph(found.graph) == dump_graph(graph)
    assert compiled(found.graph).to_text() == text


def test_the_text_of_a_file_is_one_of_a_graph() -> None:
    graph = tpch_graph("q03", FORCED)
    plan = compiled(graph)
    notes = json.loads(plan.to_text())["compiled"]
    assert plan.to_text() == dump_graph(graph, indent=1, compiled=notes) + "\n"
    # Lists of lines, for people who review a plan.
    assert "SELECT" in "".join(notes["shown"]["stages"][0]["sql"])


def test_a_plan_that_was_changed_by_hand_shows_what_it_is() -> None:
    text = compiled(tpch_graph("q03", FORCED)).to_text()
    changed = text.replace('"num_partitions": ', '"num_partitions": 1')
    assert changed != text
    with pytest.raises(GraphFormatError, match="remove its line 'checksum'"):
        parse_plan(changed, later=True)
    found = parse_plan(_without_checksum(changed), later=True)
    assert found.shown is None
    assert all(is_read(stage) for stage in found.graph.stages)
    body = json.loads(_without_checksum(text))
    assert parse_plan(json.dumps(body), later=True).graph == tpch_graph("q03", FORCED)


def _without_checksum(text: str) -> str:
    """As somebody leaves it who has edited a plan."""
    return re.sub(r'\n "checksum": ".*",', "", text)


def test_other_versions_show_their_plans_anew() -> None:
    graph = tpch_graph("q06", FORCED)
    text = compiled(graph).to_text()
    assert parse_plan(seal(text.replace('"version": 1', '"version": 0'))).shown is None
    assert parse_plan(dump_graph(graph, indent=1)).graph == graph


def test_threads_see_the_same_operators() -> None:
    graph = parse_plan(compiled(tpch_graph("q08", FORCED)).to_text(), later=True).graph
    seen: list[tuple[PhysicalPlan, ...]] = []
    threads = [
        threading.Thread(target=lambda: seen.append(tuple(s.fragment for s in graph.stages)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len({tuple(map(id, found)) for found in seen}) == 1


def test_a_stage_without_operators_is_a_stage() -> None:
    graph = tpch_graph("q12", FORCED)
    read = parse_plan(compiled(graph).to_text(), later=True).graph
    assert pickle.loads(pickle.dumps(read)) == graph
    with pytest.raises(AttributeError, match="'Stage' object has no attribute 'fragments'"):
        _ = read.stages[0].fragments  # type: ignore[attr-defined]  # that is the test


# ---------------------------------------------------------------- a code location


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three queries that are compiled, over tables whose files are gone since."""
    for name in ("sales", "shops"):
        (tmp_path / name).mkdir()
        days = pa.array([19_700, 19_701], pa.date32())
        pq.write_table(pa.table({"shop": [1, 2], "day": days}), tmp_path / name / "0.parquet")
    (tmp_path / "catalog.yaml").write_text(
        "tables: {sales: {location: sales}, shops: {location: shops}}"
    )
    (tmp_path / "queries").mkdir()
    daily = "-- partitions: {by: daily, start: 2024-01-01, column: day}\n"
    where = "WHERE s.day >= :partition_start AND s.day < :partition_end"
    texts = {
        "by_shop": f"{daily}-- checks: [not_null: shop]\n"
        f"SELECT s.shop, s.day, count(*) AS n FROM sales s JOIN shops p ON s.shop = p.shop {where} "
        "GROUP BY s.shop, s.day",
        "share": f"{daily}SELECT shop, day, n * 2 AS twice FROM by_shop s {where}",
        "numbers": FALLBACK,
    }
    for name, text in texts.items():
        (tmp_path / "queries" / f"{name}.sql").write_text(text)
    write_plans(tmp_path)
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    return tmp_path


def write_plans(folder: Path) -> None:
    from stagecoach.assets.plans.compiled import compile_project

    queries = load_project(folder / "queries").queries
    catalog = load_catalog(folder / "catalog.yaml")
    (folder / "plans").mkdir()
    for made in compile_project(queries, (), [q.source for q in queries], catalog, OPTIONS):
        assert made.error is None
        for query, plan in made.plans:
            plan_file(folder / "plans", query).write_text(plan.to_text())


def build(
    project: Path, translator: StageTranslator | None = None, plans: str = "plans"
) -> dg.Definitions:
    return build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        storage=project / "store",
        plans=project / plans,
        options=OPTIONS,
        translator=translator,
        engine=dg.ResourceDefinition.hardcoded_resource(FakeRunner()),
    )


class Watching(StageTranslator):
    """Remembers the stages that it was asked about."""

    def __init__(self) -> None:
        self.stages: dict[tuple[str, int], Stage] = {}

    def get_asset_key(self, props: StageProps) -> dg.AssetKey:
        self.stages[props.query.name, props.stage.stage_id] = props.stage
        return super().get_asset_key(props)


def specs(definitions: dg.Definitions) -> dict[str, dg.AssetSpec]:
    return {s.key.to_user_string(): s for s in definitions.resolve_all_asset_specs()}


def test_a_location_is_loaded_without_operators(project: Path) -> None:
    watching = Watching()
    found = specs(build(project, watching))
    # Only where partitions must be mapped: by the filters of the stage that reads the table.
    read = {place for place, stage in watching.stages.items() if is_read(stage)}
    assert read == {("share", 0)}
    # All the same as without what was kept.
    (project / "bare").mkdir()
    for path in (project / "plans").iterdir():
        plan = parse_plan(path.read_text())
        (project / "bare" / path.name).write_text(dump_graph(plan.graph))
    bare = Watching()
    expected = specs(build(project, bare, plans="bare"))
    assert all(is_read(stage) for stage in bare.stages.values())
    assert found == expected
    assert any("```sql\nSELECT" in str(spec.description) for spec in found.values())


def test_a_translator_sees_the_stage_itself(project: Path) -> None:
    class Named(Watching):
        def get_description(self, props: StageProps) -> str:
            return f"{type(props.stage.fragment).__name__}\n\n{super().get_description(props)}"

    named = Named()
    found = specs(build(project, named))
    assert all(is_read(stage) for stage in named.stages.values())
    leaf = named.stages["by_shop", 0]
    description = str(found["by_shop/stage_0"].description)
    assert description.startswith(f"{type(leaf.fragment).__name__}\n\n{leaf.title}")


def test_a_plan_without_texts_is_compiled_again(project: Path) -> None:
    from stagecoach.assets.plans.staleness import check_plan

    query = Query(name="one", sql="SELECT 1 AS one")
    catalog = load_catalog(project / "catalog.yaml")
    now = compile_query(query, catalog, OPTIONS)
    path = project / "plans" / "one.json"

    def check() -> tuple[str, tuple[str, ...], bool]:
        finding = check_plan(path, now, catalog, OPTIONS)
        return finding.status, finding.reasons, finding.is_as_written

    path.write_text(now.to_text())
    assert check() == ("fresh", (), True)
    path.write_text(dump_graph(now.graph, compiled=now.notes))
    assert check() == (
        "fresh",
        ("it lacks what Dagster shows of it, or was changed by hand",),
        False,
    )
    path.write_text(now.to_text().replace("ProjectionExec", "Projection"))
    assert check()[0] == "stale"


def test_pinned_plans_keep_what_is_shown(project: Path) -> None:
    from stagecoach.assets.plans.pinned import PinnedPlans
    from stagecoach.assets.plans.planner import planner_of
    from stagecoach.infra.storage.stores import open_store
    from stagecoach.planner.catalog import MappingCatalog
    from stagecoach.planner.types import INT, Field

    catalog = MappingCatalog([TableInfo("t", (Field("a", INT),))])
    query = Query(name="one", sql="SELECT a, count(*) AS n FROM t GROUP BY a")
    store = open_store(str(project / "store"))
    first = PinnedPlans(planner_of(OPTIONS), store, OPTIONS)
    graph = first(query, catalog)
    again = PinnedPlans(planner_of(OPTIONS), store, OPTIONS)
    kept = again(query, catalog)
    assert not any(is_read(stage) for stage in kept.stages)
    made, shown = first.shown(query), again.shown(query)
    assert made is not None
    assert shown is not None
    assert shown.to_json() == made.to_json()
    assert kept == graph
    check = Query(name="one.not_null_a", sql="SELECT a FROM t WHERE a IS NULL")
    first(check, catalog)
    assert again(check, catalog) == first(check, catalog)
    assert again.shown(check) is None
