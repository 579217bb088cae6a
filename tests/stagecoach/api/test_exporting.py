"""Results as tables of a lake, by the API and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from stagecoach.api.exporting import read_output
from stagecoach.api.session import Session
from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.planner.errors import OptionError
from stagecoach.planner.options import PlannerOptions
from tests.acceptance.runs import store_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales").mkdir()
    rows = {"shop": ["a", "b", "a", None], "amount": [1, 2, 3, 4]}
    pq.write_table(pa.table(rows), tmp_path / "sales" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {sales: {location: sales}}")
    (tmp_path / "totals.sql").write_text(SQL)
    return tmp_path


def lake(project: Path) -> dict[str, str]:
    return {
        "name": "lake",
        "type": "sql",
        "uri": f"sqlite:///{project}/lake.db",
        "warehouse": str(project / "lake"),
    }


def rows_of_delta(folder: Path) -> list[tuple[str | None, int]]:
    found = DeltaTable(folder).to_pyarrow_table().to_pylist()
    return sorted(((row["shop"], row["total"]) for row in found), key=str)


def rows_in_lake(project: Path, table: str) -> list[tuple[str | None, int]]:
    properties = {k: v for k, v in lake(project).items() if k in ("uri", "warehouse")}
    found = SqlCatalog("lake", **properties).load_table(table).scan().to_arrow().to_pylist()
    return sorted(((row["shop"], row["total"]) for row in found), key=str)


TOTALS = [("a", 4), ("b", 2), (None, 4)]


@pytest.mark.spark
@pytest.mark.slow
def test_a_result_becomes_an_iceberg_table(
    project: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    settings = store_settings(spark_settings, project / "store")
    catalog = load_catalog(project / "catalog.yaml")
    with Session(catalog=catalog, settings=settings, options=PlannerOptions()) as session:
        result = session.query(SQL)
        output = {"format": "iceberg", "table": "shop.totals", "catalog": lake(project)}
        written = result.write_table(**output)
        assert (written.table, written.num_rows, written.reused) == ("shop.totals", 3, False)
        assert rows_in_lake(project, "shop.totals") == TOTALS
        # Again: nothing is added twice, however the rows would be added.
        assert result.write_table(**output, mode="append").reused
        assert rows_in_lake(project, "shop.totals") == TOTALS
        more = session.query("SELECT 'c' AS shop, 5L AS total")
        assert more.write_table(**output, mode="append").version != written.version
        assert rows_in_lake(project, "shop.totals") == sorted([*TOTALS, ("c", 5)], key=str)
        changes = session.query(
            "SELECT * FROM VALUES ('c', 6L, false), ('d', 7L, false), ('a', 0L, true)"
            " AS t(shop, total, gone)"
        )
        merge = {"mode": "merge", "key": ["shop"], "delete_column": "gone"}
        assert changes.write_table(**output, **merge).num_rows == 2
        kept = [row for row in TOTALS if row[0] != "a"]
        assert rows_in_lake(project, "shop.totals") == sorted([*kept, ("c", 6), ("d", 7)], key=str)
        delta = {"format": "delta", "table": "delta_totals", "location": "lake/totals"}
        assert result.write_table(**delta).num_rows == 3
        assert result.write_table(**delta, mode="append").reused
        more.write_table(**delta, mode="append")
        assert rows_of_delta(project / "lake" / "totals") == sorted([*TOTALS, ("c", 5)], key=str)
        assert changes.write_table(**delta, **merge).num_rows == 2
        expected = sorted([*kept, ("c", 6), ("d", 7)], key=str)
        assert rows_of_delta(project / "lake" / "totals") == expected
        # One of the storage, which other queries can read.
        assert session.query(SQL).write_table(table="totals").version == 1
        sql = "SELECT (SELECT count(*) FROM totals VERSION AS OF 1) AS n, count(*) AS d FROM delta_totals"
        assert session.query(sql).to_arrow().to_pylist() == [{"n": 3, "d": 4}]
        with pytest.raises(PublishError, match="shop"):
            session.query("SELECT 1 AS one").write_table(**output, mode="append")


@pytest.mark.spark
@pytest.mark.slow
def test_the_command_line_writes_a_table(project: Path, spark: SparkSession) -> None:
    output = f"{{format: iceberg, table: shop.totals, catalog: {lake(project)}}}"
    arguments = ["query", "totals.sql", "--catalog", "catalog.yaml", "--storage", "store"]
    for part in ("→ table shop.totals, version", "which had them already"):
        result = CliRunner().invoke(cli, [*arguments, "--output-table", output])
        assert result.exit_code == 0, result.output
        assert part in result.output
        assert "shop │" not in result.output
    assert rows_in_lake(project, "shop.totals") == TOTALS


@pytest.mark.parametrize(
    ("output", "part"),
    [
        ({"formt": "iceberg"}, "unknown key 'formt'; did you mean 'format'?"),
        ({"format": "icebrg"}, "did you mean 'iceberg'?"),
        ({"mode": "upsert"}, "mode"),
        ({"mode": "replace_partition"}, "replace_partition needs partitions"),
    ],
)
def test_mistakes_in_an_output(output: dict[str, str], part: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_output(output)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--output-table", "{format: icebrg}"], "did you mean 'iceberg'?"),
        (["--output-table", "{format: "], "it is not YAML"),
        (["--output-table", "iceberg"], "write a mapping"),
        (["--output-table", "{table: t}", "--output", "a.csv"], "cannot be used together"),
        (["totals.sql", "--output-table", "{table: t}"], "for one query"),
    ],
)
def test_mistakes_on_the_command_line(project: Path, arguments: list[str], part: str) -> None:
    result = CliRunner().invoke(
        cli, ["query", "totals.sql", "--catalog", "catalog.yaml", *arguments]
    )
    assert result.exit_code == 2
    assert part in result.output
    assert not (project / "store").exists()
