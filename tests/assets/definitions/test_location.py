"""The code location: keys, groups, dependencies, texts, and what happens to broken queries."""

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets import (
    EngineResource,
    ProjectError,
    StageProps,
    StageTranslator,
    build_definitions,
)
from stagecoach.assets.definitions.specs import check_keys
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.project.queries import Query
from stagecoach.infra.errors import ConfigError
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.errors import AnalysisError, CatalogError
from stagecoach.planner.plan.stages import StageGraph
from tests.assets.fakes import FakeRunner, make_graph

ENGINE = dg.ResourceDefinition.hardcoded_resource(FakeRunner())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two queries over two tables."""
    (tmp_path / "queries").mkdir()
    front = "-- description: Sales of the month\n-- owners: ['team:sales']\n-- tags: {area: emea}\n"
    (tmp_path / "queries" / "sales.sql").write_text(f"{front}SELECT k, v FROM t")
    (tmp_path / "queries" / "stock.sql").write_text("SELECT k, v FROM u")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}, u: {location: u}}")
    return tmp_path


def fake_plan(query: Query, catalog: Catalog) -> StageGraph:
    return make_graph(query.name, query.sql)


def build(
    project: Path, plan: PlanQuery = fake_plan, translator: StageTranslator | None = None
) -> dg.Definitions:
    return build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        engine=ENGINE,
        plan=plan,
        translator=translator,
    )


def node(definitions: dg.Definitions, *key: str) -> dg.AssetSpec:
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    return specs[dg.AssetKey(key)]


def test_the_definitions_are_loadable_and_complete(project: Path) -> None:
    definitions = build(project)
    dg.Definitions.validate_loadable(definitions)
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    stages = {f"{q}/stage_{i}" for q in ("sales", "stock") for i in range(3)}
    assert keys == {"t", "u", "sales", "stock"} | stages
    jobs = {job.name for job in definitions.resolve_all_job_defs()}
    assert {"run_sales", "run_stock"} <= jobs


def test_every_job_uses_the_thread_executor(project: Path) -> None:
    for job in build(project).resolve_all_job_defs():
        assert job.executor_def.name == "stagecoach_threads"


def test_a_project_may_have_another_executor(project: Path) -> None:
    definitions = build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        engine=ENGINE,
        plan=fake_plan,
        executor=dg.multiprocess_executor,
    )
    assert definitions.resolve_job_def("run_sales").executor_def.name == "multiprocess"


def test_dependencies_are_the_edges_of_the_graph(project: Path) -> None:
    definitions = build(project)

    def upstream(*key: str) -> set[str]:
        return {dep.asset_key.to_user_string() for dep in node(definitions, *key).deps}

    assert upstream("sales", "stage_0") == {"t"}
    assert upstream("sales", "stage_1") == {"u"}
    assert upstream("sales", "stage_2") == {"sales/stage_0", "sales/stage_1"}
    assert upstream("sales") == {"sales/stage_2"}


def test_what_a_stage_tells_about_itself(project: Path) -> None:
    definitions = build(project)
    leaf, head = node(definitions, "sales", "stage_0"), node(definitions, "sales")
    graph = make_graph()
    assert leaf.group_name == head.group_name == "sales"
    assert leaf.code_version == graph.stages[0].plan_hash
    assert leaf.kinds == {"duckdb", "stage"}
    assert list(leaf.owners) == ["team:sales"]
    assert leaf.tags["area"] == "emea"
    assert leaf.description is not None
    assert leaf.description.splitlines()[0] == "step 0 → hash(k)."
    assert "Runs on duckdb: every expression is proven" in leaf.description
    assert "```text\nFilterExec: true\n  ScanExec: table=t" in leaf.description
    assert "```sql\nSELECT CAST(" in leaf.description
    assert "sales" not in leaf.description
    assert head.description is not None
    assert head.description.startswith("Sales of the month.\n\nThe last of 4 stages: ")
    assert "```sql\n-- description: Sales" in head.description
    schema = head.metadata["dagster/column_schema"]
    assert [(c.name, c.type) for c in schema.columns] == [("k", "bigint"), ("v", "bigint")]


def test_a_base_table_is_an_external_asset_with_columns(project: Path) -> None:
    definitions = build(project)
    table = node(definitions, "t")
    assert [c.name for c in table.metadata["dagster/column_schema"].columns] == ["k", "v"]
    graph = definitions.resolve_asset_graph()
    assert dg.AssetKey(["t"]) not in graph.executable_asset_keys


def test_sql_cannot_close_its_fence(project: Path) -> None:
    (project / "queries" / "stock.sql").write_text("SELECT '```' FROM t")
    description = node(build(project), "stock").description
    assert description is not None
    assert "````sql\nSELECT '```' FROM t\n````" in description


def test_a_translator_may_change_one_thing(project: Path) -> None:
    class Prefixed(StageTranslator):
        def get_asset_key(self, props: StageProps) -> dg.AssetKey:
            return super().get_asset_key(props).with_prefix("lake")

        def get_group_name(self, props: StageProps) -> str:
            return "everything"

    definitions = build(project, translator=Prefixed())
    assert node(definitions, "lake", "sales").group_name == "everything"
    deps = node(definitions, "lake", "sales", "stage_2").deps
    assert {d.asset_key.path[0] for d in deps} == {"lake"}


def test_mistakes_in_sql_fail_the_location_with_all_of_them_listed(project: Path) -> None:
    def plan(query: Query, catalog: Catalog) -> StageGraph:
        raise AnalysisError(f"no column in {query.name}", line=2, column=3)

    with pytest.raises(ProjectError) as caught:
        build(project, plan)
    message = str(caught.value)
    assert "2 mistake(s) in queries" in message
    assert "sales.sql: no column in sales (line 2, column 3)" in message
    assert "stock.sql: no column in stock" in message


def test_missing_data_blocks_its_queries_only(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def plan(query: Query, catalog: Catalog) -> StageGraph:
        if query.name == "stock":
            raise CatalogError("table 'u': no files at /data/u")
        return make_graph(query.name)

    definitions = build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        engine=ENGINE,
        plan=plan,
        missing_data_hint="Run `make demo`.",
    )
    dg.Definitions.validate_loadable(definitions)
    blocked = node(definitions, "stock")
    assert blocked.description is not None
    assert "no files at /data/u. Run `make demo`." in blocked.description
    assert "no stages for stock: table 'u': no files at /data/u. Run `make demo`." in caplog.text
    jobs = {job.name for job in definitions.resolve_all_job_defs()}
    assert "run_sales" in jobs
    assert "run_stock" not in jobs


def test_a_declared_table_needs_no_data_to_be_an_asset(project: Path, tmp_path: Path) -> None:
    (project / "catalog.yaml").write_text(
        "tables:\n"
        "  t: {location: t, columns: {k: {type: int, comment: of whom}, v: bigint not null}}\n"
        "  u: {location: u}\n"
    )
    definitions = build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        storage=tmp_path / "storage",
    )
    table = node(definitions, "t")
    columns = table.metadata["dagster/column_schema"].columns
    assert [(c.name, c.type, c.description, c.constraints.nullable) for c in columns] == [
        ("k", "int", "of whom", True),
        ("v", "bigint", None, False),
    ]
    sales = node(definitions, "sales")
    assert [dep.asset_key for dep in sales.deps] == [dg.AssetKey("t")]
    lineage = sales.metadata["dagster/column_lineage"].deps_by_column
    assert [(d.asset_key.path, d.column_name) for d in lineage["v"]] == [(["t"], "v")]
    jobs = {job.name for job in definitions.resolve_all_job_defs()}
    assert ("run_sales" in jobs, "run_stock" in jobs) == (True, False)
    blocked = node(definitions, "stock").description
    assert blocked is not None and "table 'u': " in blocked


def test_comments_follow_columns_through_queries(project: Path, tmp_path: Path) -> None:
    (project / "catalog.yaml").write_text(
        "tables:\n"
        "  t: {location: t, columns: {k: {type: int, comment: of whom},"
        " v: {type: bigint, comment: how many}, w: int}}\n"
    )
    (project / "queries" / "sales.sql").write_text(
        "SELECT K, max(v) AS v, sum(w) AS w, k + v AS s, max(k) AS other FROM t GROUP BY k, k + v"
    )
    (project / "queries" / "stock.sql").write_text("SELECT k, CAST(v AS int) AS v, s FROM sales")
    definitions = build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        storage=tmp_path / "storage",
    )

    def descriptions(query: str) -> dict[str, str | None]:
        columns = node(definitions, query).metadata["dagster/column_schema"].columns
        return {column.name: column.description for column in columns}

    others = {"w": "from t.w", "s": "from t.k, t.v", "other": "from t.k"}
    assert descriptions("sales") == {"K": "of whom", "v": "how many", **others}
    assert descriptions("stock") == {"k": "of whom", "v": "from sales.v", "s": "from sales.s"}


def test_a_blocked_query_looks_as_the_translator_has_it(project: Path) -> None:
    class Prefixed(StageTranslator):
        def get_asset_key(self, props: StageProps) -> dg.AssetKey:
            return super().get_asset_key(props).with_prefix("lake")

        def get_group_name(self, props: StageProps) -> str:
            return f"all_{props.query.name}"

    def plan(query: Query, catalog: Catalog) -> StageGraph:
        raise CatalogError("table 'u': no files at /data/u")

    blocked = node(build(project, plan, translator=Prefixed()), "lake", "stock")
    assert blocked.group_name == "all_stock"
    assert "no files at /data/u" in str(blocked.metadata["stagecoach/problem"])


def test_a_query_must_not_bear_the_name_of_a_table(project: Path) -> None:
    (project / "queries" / "T.sql").write_text("SELECT 1")
    with pytest.raises(ProjectError, match="also used by the table 't'"):
        build(project)


def test_duplicate_keys_are_one_error() -> None:
    key = dg.AssetKey(["a"])
    with pytest.raises(ProjectError, match=r"'a' is used by x\.sql and by y\.sql"):
        check_keys([(key, "x.sql"), (key, "y.sql"), (dg.AssetKey(["b"]), "z.sql")])


def test_a_translator_that_merges_keys_is_refused(project: Path) -> None:
    class Same(StageTranslator):
        def get_asset_key(self, props: StageProps) -> dg.AssetKey:
            return dg.AssetKey(["one"])

    with pytest.raises(ProjectError, match=r"sales\.sql and by"):
        build(project, translator=Same())


def test_editing_a_query_changes_the_code_version_of_changed_stages_only() -> None:
    before, after = make_graph(), make_graph(sql="SELECT k, v FROM t -- edited")
    assert [s.plan_hash for s in before.stages] == [s.plan_hash for s in after.stages]


def test_the_job_runs_with_the_engine_resource(project: Path) -> None:
    runner = FakeRunner()
    definitions = build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        engine=dg.ResourceDefinition.hardcoded_resource(runner),
        plan=fake_plan,
    )
    job = definitions.resolve_job_def("run_sales")
    result = job.execute_in_process(tags={"stagecoach/parameter/day": "2024-01-31"})
    assert result.success
    assert [r.stage_id for r in runner.requests] == [0, 1, 2, 3]
    assert runner.requests[0].parameters == {"day": "2024-01-31"}
    (event,) = result.asset_materializations_for_node("sales")
    assert event.tags is not None
    assert event.tags["dagster/data_version"] == f"{make_graph().head.plan_hash[:16]}3"


def test_settings_of_the_engine_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGECOACH_CODEC", "zstd")
    resource = EngineResource(
        catalog="c.yaml", storage_root="/data/x", settings={"parallelism": "3"}
    )
    settings = resource.engine_settings()
    assert settings.storage_root == "/data/x"
    assert settings.parallelism == 3
    assert settings.codec == "zstd"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("storage_options", '{"secret_key": "marked"}'),
        ("spark_conf", '{"spark.hadoop.fs.s3a.secret.key": "marked"}'),
        ("remote", "sc://host/;token=marked"),
        ("storage_root", "ftp://me:marked@host/x"),
    ],
)
def test_the_engine_resource_takes_no_secrets(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    resource = EngineResource(catalog="c.yaml", settings={name: value})
    with pytest.raises(ConfigError, match=f"set the variable STAGECOACH_{name.upper()}") as e:
        resource.configuration()
    assert "marked" not in str(e.value)
    monkeypatch.setenv(f"STAGECOACH_{name.upper()}", value)
    others = EngineResource(
        catalog="c.yaml",
        settings={"spark_conf": '{"spark.x": "1"}', "storage_options": '{"region": "eu-west-1"}'},
    )
    assert others.configuration().engine.spark_conf["spark.x"] == "1"


@pytest.mark.slow
def test_loading_is_quiet_and_starts_no_spark(project: Path) -> None:
    """In a process of its own, with every warning an error; the tables have data."""
    for name in ("t", "u"):
        (project / name).mkdir()
        pq.write_table(pa.table({"k": [1, 2], "v": [3, 4]}), project / name / "0.parquet")
    code = f"""
import sys, warnings
warnings.simplefilter("error")
from stagecoach.assets import build_definitions
import dagster as dg
defs = build_definitions(
    queries={str(project / "queries")!r},
    catalog={str(project / "catalog.yaml")!r},
    storage={str(project / "store")!r},
)
dg.Definitions.validate_loadable(defs)
assert defs.resolve_job_def("run_sales")
assert "pyspark" not in sys.modules, "pyspark was imported"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
