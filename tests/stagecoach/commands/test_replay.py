"""`stagecoach replay`: stages again, rows traced, differences, and what is wrong with a request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stagecoach.api.session import connect
from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import load_settings
from stagecoach.infra.publishing.publish import Staged
from stagecoach.infra.storage import layout
from stagecoach.planner import plan_query
from stagecoach.planner.options import PlannerOptions
from tests.infra.formats.published.outputs import publish_rows, stage_rows
from tests.infra.replay.recorded import record_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = "0f6a1c1e-9f6b-4f6e-8d62-1d5b8e2f7a10"
FORCED = PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0)
SQL = """-- checks:
--   - not_null: name
SELECT name, sum(amount) AS total
FROM sales JOIN shops ON sales.shop = shops.shop
GROUP BY name
ORDER BY name
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a query, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STAGECOACH_STORAGE_ROOT", str(tmp_path / "storage"))
    (tmp_path / "pipelines/queries").mkdir(parents=True)
    (tmp_path / "pipelines/queries/totals.sql").write_text(SQL)
    for name, columns in {
        "sales": {"shop": [1, 1, 2, 3], "amount": [5, 6, 7, 8]},
        "shops": {"shop": [1, 2, 3], "name": ["a", "b", None]},
    }.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(columns), tmp_path / name / "0.parquet")
    catalog = "tables:\n  sales: {location: ../sales}\n  shops: {location: ../shops}\n"
    (tmp_path / "pipelines/catalog.yaml").write_text(catalog)
    return tmp_path


@pytest.fixture
def run(project: Path) -> str:
    """A run of it that has ended."""
    catalog = load_catalog(Path("pipelines/catalog.yaml"))
    settings = load_settings(overrides={"spill_dir": str(project / "spill")})
    graph = plan_query(SQL, catalog, FORCED, name="totals")
    record_run(graph, catalog, settings, settings.open_store(), RUN)
    return RUN


def replay(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["replay", *arguments])


def test_all_stages(run: str) -> None:
    ran = replay(run[:8], "--no-spark")
    assert ran.exit_code == 0, ran.output
    lines = ran.stdout.splitlines()
    assert lines[0] == f"run {run}: query 'totals', 5 stages"
    assert lines[2:4] == ["stage 0  scan shops → shuffle(shop)", "  the run          3 rows"]
    assert lines[-1] == "the run's rows are what its stages give again (5 stages)"
    assert "Spark" not in ran.stdout


def test_one_stage_as_json(run: str) -> None:
    ran = replay(run, "--no-spark", "--stage", "4", "--json")
    told = json.loads(ran.stdout)
    assert [stage["stage"] for stage in told["stages"]] == [4]
    assert told["first_stage_where_engines_differ"] is None
    assert [side["rows"] for side in told["stages"][0]["sides"]] == [3, 3]


def test_rows_are_traced_to_the_tables(run: str) -> None:
    ran = replay(run, "--no-spark", "--where", "name = 'a'", "--rows", "1")
    assert ran.exit_code == 0, ran.output
    text = ran.stdout
    assert "1 row of the result (3 in all) with name = 'a'" in text
    assert "  table shops: 1 row contributes\n    by shop, name\n" in text
    assert "  table sales: 2 rows contribute\n" in text
    assert "    … (the first 1 are shown; --rows N shows more)" in text


def test_rows_that_fail_a_check_are_traced(run: str) -> None:
    told = json.loads(replay(run, "--no-spark", "--check", "not_null_name", "--json").stdout)
    assert told["chosen"] == {"num_rows": 1, "rows": [{"name": None, "total": 8}]}
    inputs = {one["input"]: one for stage in told["traced"] for one in stage["inputs"]}
    assert inputs["table sales"]["rows"] == [{"shop": 3, "amount": 8}]
    assert inputs["table shops"]["rows"] == [{"shop": 3, "name": None}]


@pytest.mark.parametrize("name", ["Totals", "totals@staged"])
def test_a_run_may_be_named_by_the_table_that_it_made(run: str, name: str) -> None:
    store, rows = load_settings().open_store(), pa.table({"n": [1]})
    made = stage_rows(store, rows, "totals", run_id=run if "@" in name else "other")
    assert isinstance(made, Staged)
    if "@" not in name:
        publish_rows(store, rows, "totals", run_id=run)
    ran = replay(name, "--no-spark", "--check", "not_null_name")
    assert ran.stdout.startswith(f"run {run}: query 'totals'"), ran.output


def test_a_check_may_use_macros(run: str) -> None:
    Path("pipelines/macros").mkdir()
    declared = "CREATE FUNCTION is_big(x BIGINT) RETURN x > 10"
    Path("pipelines/macros/big.sql").write_text(declared)
    check = "no_rows: {name: big, sql: SELECT * FROM totals WHERE is_big(total)}"
    Path("pipelines/queries/totals.sql").write_text(SQL.replace("not_null: name", check))
    told = json.loads(replay(run, "--no-spark", "--check", "big", "--json").stdout)
    assert told["chosen"]["rows"] == [{"name": "a", "total": 11}]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nope", "--no-spark"], 2, "error: there is no run 'nope' in "),
        (["totals@staged", "--no-spark"], 2, "error: there is no run 'totals@staged' in "),
        ([RUN, "--stage", "9"], 2, "has no stage 9; its stages are 0 to 4"),
        ([RUN, "--where", "x", "--check", "y"], 2, "--where and --check choose the same rows"),
        ([RUN, "--no-spark", "--where", "nam = 'a'"], 2, "column 'nam' not found"),
        ([RUN, "--no-spark", "--check", "nope"], 2, "has no check 'nope'; its checks: 'not_null"),
        ([RUN, "--no-spark", "--check", "x", "--project", "elsewhere"], 2, "no query 'totals' in"),
    ],
)
@pytest.mark.usefixtures("run")
def test_what_is_wrong_is_said_at_once(arguments: list[str], code: int, message: str) -> None:
    ran = replay(*arguments)
    assert message in ran.stderr
    assert ran.exit_code == code
    assert not ran.stdout


def test_a_table_file_that_has_changed_is_named(run: str, project: Path) -> None:
    pq.write_table(pa.table({"shop": [9], "name": ["z"]}), project / "shops" / "0.parquet")
    ran = replay(run, "--no-spark", "--where", "name = 'a'")
    assert ran.exit_code == 1
    assert re.search(r"DuckDB: no rows: file .*/shops/0.parquet .*; start a new run", ran.stdout)
    assert "the run's rows are what its stages give again (4 stages)" in ran.stdout
    assert "  not traced: file " in ran.stdout
    assert "table sales: 2 rows contribute" in ran.stdout


@pytest.mark.spark
@pytest.mark.slow
def test_a_real_run_on_spark(project: Path, spark: SparkSession) -> None:
    del spark  # the one that the process has
    sql = SQL.replace(
        "GROUP BY", "WHERE amount < :most AND current_date() > DATE'2000-01-01'\nGROUP BY"
    )
    forced = {"force_distribution": True, "num_partitions": 3, "broadcast_bytes": 0}
    with connect("pipelines/catalog.yaml", options=forced) as session:
        result = session.query(sql, {"most": 8}, name="totals")
        store = session.store
        assert result.num_rows == 2
        assert len(list(store.list(layout.run_plans(result.run_id)))) == 1
        ran = replay(result.run_id, "--where", "name = 'b'")
    assert ran.exit_code == 0, ran.output
    assert "  most = 8" in ran.stdout
    assert "DuckDB and Spark give the same rows (5 stages compared)" in ran.stdout
    assert "the run's rows are what its stages give again (5 stages)" in ran.stdout
    assert "  table sales: 1 row contributes" in ran.stdout
