"""The `dg` component: loaded from `defs.yaml` by Dagster's own loader."""

import dataclasses
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster.components import load_from_defs_folder
from dagster.components.core.component_tree import ComponentTreeException

from stagecoach import StagecoachProject as Public
from stagecoach.assets.definitions.components import StagecoachProject
from stagecoach.assets.definitions.location import build_definitions
from stagecoach.assets.definitions.translator import StageProps, StageTranslator
from stagecoach.assets.execution.resources import EngineResource
from stagecoach.assets.plans.planned import PlanQuery
from tests.assets.fakes import make_graph

DEFS = """
type: stagecoach.StagecoachProject
attributes:
  queries: "{{ project_root }}/queries"
  catalog: ../../../catalog.yaml
  storage: "{{ project_root }}/storage"
"""
TRANSLATED = (
    DEFS
    + """
  schedules_run: false
  options: {num_partitions: 3, force_distribution: true}
  translation:
    key_prefix: [warehouse]
    group_name: "{{ query.front_matter.tags.get('area', 'none') }}"
    owners: ["team:data"]
    tags: {engine: "{{ stage.engine }}"}
    metadata: {head: "{{ is_head }}"}
  table_translation:
    key: "raw/{{ table }}"
"""
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A dg project of two queries, the second of which reads the first."""
    (tmp_path / "pets").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "kind": ["a", "b"]}), tmp_path / "pets" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {pets: {location: pets}}")
    (tmp_path / "queries").mkdir()
    sql = "-- tags: {area: animals}\n-- schedule: 0 5 * * *\nSELECT kind, count(*) AS n FROM pets GROUP BY kind"
    (tmp_path / "queries" / "kinds.sql").write_text(sql)
    (tmp_path / "queries" / "most.sql").write_text("SELECT max(n) AS n FROM kinds")
    package = tmp_path / "shop"
    (package / "defs" / "sql").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "defs" / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "shop"\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
        del sys.modules[name]


def load(project: Path, text: str) -> dg.Definitions:
    (project / "shop" / "defs" / "sql" / "defs.yaml").write_text(text)
    return load_from_defs_folder(path_within_project=project / "shop")


def causes(project: Path, text: str) -> str:
    """What the error of loading says, with what it was raised from."""
    with pytest.raises(ComponentTreeException) as caught:
        load(project, text)
    found: list[str] = []
    error: BaseException | None = caught.value
    while error is not None:
        found.append(str(error))
        error = error.__cause__
    return "\n".join(found)


def keys(defs: dg.Definitions) -> set[str]:
    return {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}


def test_a_project_is_loaded(project: Path) -> None:
    assert Public is StagecoachProject
    defs = load(project, DEFS)
    assert keys(defs) == {"kinds", "most", "pets"}
    assert defs.resolve_job_def("run_kinds")
    (schedule,) = defs.schedules or ()
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
    engine = defs.resources["engine"] if defs.resources else None
    assert getattr(engine, "storage_root", "") == str(project / "storage")


def test_translations_have_the_last_word(project: Path) -> None:
    defs = load(project, TRANSLATED)
    assert keys(defs) == {
        "warehouse/kinds/stage_0", "warehouse/kinds", "warehouse/most/stage_0", "warehouse/most", "raw/pets",
    }  # fmt: skip
    specs = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    leaf, head = specs["warehouse/kinds/stage_0"], specs["warehouse/kinds"]
    assert [dep.asset_key.to_user_string() for dep in leaf.deps] == ["raw/pets"]
    assert {d.asset_key.to_user_string() for d in head.deps} == {"warehouse/kinds/stage_0"}
    assert {d.asset_key.to_user_string() for d in specs["warehouse/most/stage_0"].deps} == {
        "warehouse/kinds"
    }
    assert (leaf.group_name, specs["warehouse/most"].group_name) == ("animals", "none")
    assert leaf.owners == ["team:data"]
    assert leaf.tags["engine"] in ("duckdb", "spark")
    assert leaf.tags["area"] == "animals"
    assert (leaf.metadata["head"], head.metadata["head"]) == (False, True)
    assert "stagecoach/plan_hash" in leaf.metadata
    found = leaf.metadata["dagster/column_lineage"]
    lineage = getattr(found, "value", found)
    assert lineage.deps_by_column["kind"][0].asset_key == dg.AssetKey(["raw", "pets"])
    (schedule,) = defs.schedules or ()
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED


def test_what_runs_go_by_cannot_be_translated(project: Path) -> None:
    message = causes(project, f"{DEFS}\n  translation: {{code_version: '7'}}")
    assert "cannot change code_version of 'kinds'; the plan decides" in message


def test_base_tables_may_be_made_elsewhere(project: Path) -> None:
    (project / "shop" / "defs" / "pets.py").write_text(
        "import dagster as dg\n@dg.asset\ndef pets() -> None: ...\n"
    )
    graph = load(project, f"{DEFS}\n  table_assets: false").resolve_asset_graph()
    assert graph.get(dg.AssetKey("pets")).is_materializable
    assert graph.get(dg.AssetKey("kinds")).parent_keys == {dg.AssetKey("pets")}


def test_unknown_attributes_are_told(project: Path) -> None:
    assert "querys" in causes(project, DEFS.replace("queries:", "querys:"))


class Owned(StageTranslator):
    def get_group_name(self, props: StageProps) -> str | None:
        return f"of_{props.query.name}"


class Ours(StagecoachProject):
    translator_class = Owned


def test_a_subclass_says_more_in_python(project: Path) -> None:
    made = Ours(
        queries=str(project / "queries"),
        catalog=str(project / "catalog.yaml"),
        storage=str(project / "storage"),
    )
    tree = dg.ComponentTree.for_test()
    groups = {
        spec.group_name for spec in made.build_defs(tree.load_context).resolve_all_asset_specs()
    }
    assert groups == {"of_kinds", "of_most", "tables"}


GC = f"""{DEFS}
  gc: {{older_than: 3d, cron: "0 4 * * *"}}
  settings_file: "{{{{ project_root }}}}/stagecoach.yaml"
  missing_data_hint: Feed the pets.
"""


def test_garbage_is_collected_as_the_file_says(project: Path) -> None:
    (project / "stagecoach.yaml").write_text("parallelism: 3\n")
    defs = load(project, GC)
    job = defs.resolve_job_def("collect_garbage")
    config = job.run_config or {}
    assert config["ops"]["remove_garbage"]["config"]["older_than"] == "3d"
    schedules = {s.name: s for s in defs.schedules or () if isinstance(s, dg.ScheduleDefinition)}
    found = schedules["collect_garbage_schedule"]
    assert (found.cron_schedule, found.execution_timezone) == ("0 4 * * *", "UTC")
    engine = defs.resources["engine"] if defs.resources else None
    assert isinstance(engine, EngineResource)
    assert engine.engine_settings().parallelism == 3
    assert "run_kinds" in {job.name for job in defs.resolve_all_job_defs()}


def test_planner_options_come_from_the_settings_file(project: Path) -> None:
    (project / "stagecoach.yaml").write_text("planner: {force_distribution: true}\n")
    assert "kinds/stage_0" in keys(load(project, GC))
    # What the project itself says is nearer.
    own = f"{GC}  options: {{force_distribution: false}}\n"
    assert "kinds/stage_0" not in keys(load(project, own))
    (project / "stagecoach.yaml").write_text("planner: {force_distribution: 5}\n")
    with pytest.raises(Exception, match="Error while building definitions") as caught:
        load(project, GC)
    said = f"force_distribution is 5 (file {project / 'stagecoach.yaml'}); give true or false"
    assert said in str(caught.value.__cause__)


def test_the_hint_is_in_the_message(project: Path) -> None:
    (project / "pets" / "a.parquet").unlink()
    (project / "stagecoach.yaml").write_text("")
    specs = {s.key.to_user_string(): s for s in load(project, GC).resolve_all_asset_specs()}
    assert "Feed the pets." in str(specs["kinds"].description)


@pytest.mark.parametrize(
    ("gc", "message"),
    [("{older_than: soon}", "soon"), ("{olderthan: 7d}", "olderthan"), ("7d", "gc")],
)
def test_mistakes_in_gc_are_told(project: Path, gc: str, message: str) -> None:
    assert message in causes(project, f"{DEFS}\n  gc: {gc}")


def test_it_takes_all_that_build_definitions_takes() -> None:
    taken = {field.name for field in dataclasses.fields(StagecoachProject)}
    # What is Python and no YAML: methods and attributes of a subclass.
    elsewhere = {
        "translator": "get_translator",
        "plan": "get_plan",
        "executor": "get_executor",
        "engine": "settings",
    }
    for name in inspect.signature(build_definitions).parameters:
        attribute = elsewhere.get(name, name)
        assert attribute in taken or hasattr(StagecoachProject, attribute), name
    engine = {"catalog", "storage_root", "settings", "settings_file"}
    assert set(EngineResource.model_fields) == engine
    assert engine - {"storage_root"} <= taken


class Planned(StagecoachProject):
    def get_plan(self) -> PlanQuery:
        return lambda query, catalog: make_graph(query.name, query.sql)


def test_a_subclass_plans_in_its_own_way(project: Path) -> None:
    made = Planned(queries=str(project / "queries"), catalog=str(project / "catalog.yaml"))
    found = made.build_defs(dg.ComponentTree.for_test().load_context)
    assert {"kinds/stage_0", "kinds/stage_1", "kinds/stage_2"} <= keys(found)
