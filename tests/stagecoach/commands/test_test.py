"""`stagecoach test`: tests of queries pass, fail with a diff, and say what is wrong with them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stagecoach.assets.query_tests.schema import schema_text
from stagecoach.assets.query_tests.schema import tests_schema as published_keys
from stagecoach.commands.main import cli
from stagecoach.infra.config.yaml_text import load_yaml
from tests.share import in_test_all

ROOT = Path(__file__).parents[3]
CATALOG = """
tables:
  sales:
    location: data/sales
    columns: {shop: int, amount: bigint, day: date, note: string, price: "decimal(10,2)", w: double}
  gone: {location: data/gone}
"""
TOTALS = """-- parameters: {least: 0}
WITH big AS (
  SELECT * FROM sales WHERE amount > :least
)
SELECT shop, sum(amount) AS total, max(price) AS top, current_date() AS day
FROM big GROUP BY shop ORDER BY shop
"""
GIVEN = """now: 2024-01-31 12:00:00
given:
  sales:
    - {shop: 1, amount: 5, price: 1.50}
    - {shop: 1, amount: 6}
    - {shop: 2, amount: 1}
tests:
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines/queries").mkdir(parents=True)
    (tmp_path / "pipelines/tests").mkdir()
    Path("pipelines/catalog.yaml").write_text(CATALOG)
    write_query("totals", TOTALS)
    return tmp_path


def write_query(name: str, sql: str) -> None:
    Path(f"pipelines/queries/{name}.sql").write_text(sql)


def write_tests(text: str, name: str = "totals") -> None:
    Path(f"pipelines/tests/{name}.yaml").write_text(text)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["test", *arguments])


def passes(text: str, name: str = "totals", *arguments: str) -> None:
    write_tests(text, name)
    done = run(*arguments)
    assert done.exit_code == 0, done.output


def fails(text: str, name: str = "totals", *arguments: str) -> str:
    write_tests(text, name)
    done = run(*arguments)
    assert done.exit_code == 1, done.output
    return done.output


def test_all_that_a_test_can_say() -> None:
    Path("pipelines/tests/rows.csv").write_text('shop,amount,note\n9,4,""\n9,,x\n')
    pq.write_table(pa.table({"shop": [8], "amount": [3]}), "pipelines/tests/rows.parquet")
    pq.write_table(pa.table({"shop": [8], "total": [3]}), "pipelines/tests/expected.parquet")
    passes(
        GIVEN
        + """
  - name: all rows, in their order
    expect:
      - {shop: 1, total: 11, top: 1.5, day: 2024-01-31}
      - {shop: 2, total: 1, day: 2024-01-31}
  - name: a parameter
    parameters: {least: 5}
    expect: [{shop: 1, total: 6}]
  - name: no rows
    parameters: {least: 100}
    expect: []
  - name: the clock
    now: 2023-12-31
    expect: {rows: [{day: 2023-12-31}, {day: 2023-12-31}]}
  - name: a CTE, whose columns a row need not name
    cte: big
    parameters: {least: 5}
    expect: [{shop: 1, amount: 6, note: null}]
  - name: a CTE that is given
    given: {big: [{shop: 3, amount: 1}, {shop: 3, amount: -1}]}
    expect: [{shop: 3, total: 0}]
  - name: CSV
    given: {sales: {csv: rows.csv}}
    expect: [{shop: 9, total: 4}]
  - name: Parquet
    given: {sales: {parquet: rows.parquet}}
    expect: {parquet: expected.parquet}
  - name: checks
    expect: {checks: [{unique: [shop]}, {row_count: {min: 2, max: 2}}, {accepted_values: {column: shop, values: [1, 2]}}]}
"""
    )


def test_rows_that_differ_are_shown() -> None:
    output = fails(
        GIVEN
        + """
  - name: wrong
    expect:
      - {shop: 1, total: 12, top: 1.50}
      - {shop: 2, total: 1}
"""
    )
    assert output.splitlines()[:8] == [
        "FAIL totals: wrong",
        "  pipelines/tests/totals.yaml:9: 1 of 2 rows differs",
        "    - expected, + found",
        "      shop │ total │ top",
        "      ─────┼───────┼─────",
        "    - 1    │ 12    │ 1.50",
        "    + 1    │ 11    │ 1.50",
        "             ~~",
    ]
    assert "(1 row is equal)" in output
    assert "1 failed" in output


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("expect: [{shop: 2, total: 1}, {shop: 1, total: 11}]", "but in another order"),
        ("expect: [{shop: 1, total: 11}]", "2 rows instead of 1"),
        ("expect: []", "2 rows instead of 0"),
        ("expect: {checks: [{row_count: {max: 1}}]}", "check 'row_count' fails for 1 row(s)"),
        ("expect: {checks: [{not_null: [top]}]}", "check 'not_null_top' fails for 1 row(s)"),
    ],
)
def test_failures(test: str, message: str) -> None:
    output = fails(f"{GIVEN}  - name: t\n    {test}\n")
    assert message in output
    assert output.startswith("FAIL totals: t")
    assert "internal error" not in output


@pytest.mark.parametrize(
    ("test", "place", "message"),
    [
        ("expect: [{shopp: 1}]", "9:15", "there is no column 'shopp'; did you mean 'shop'?"),
        ("expect: [{shop: x}]", "9:21", "column 'shop': 'x' is not a valid int"),
        ("{given: {salez: []}, expect: []}", "", "there is no table 'salez'; did you mean 'sales'?"),
        ("given: {sales: [{amount: 1.5}]}\n    expect: []", "9:30", "'1.5' is not a valid bigint"),
        ("given: {gone: []}\n    expect: []", "9:13", "columns of the table 'gone' are not known"),
        ("given: {sales: {columns: {shop: bigint}, rows: []}}\n    expect: []", "9:37",
         "the table 'sales' has the column 'shop' as int, not as bigint"),
        ("given: {sales: {csv: no.csv}}\n    expect: []", "9:26", "there is no file"),
        ("parameters: {leest: 1}\n    expect: []", "9:17", "did you mean 'least'?"),
        ("parameters: {least: x}\n    expect: []", "9:17", "it must be of type int"),
        ("cte: bigg\n    expect: []", "9:10", "the query has no CTE 'bigg' (it has: big)"),
        ("expect: {checks: [{not_null: [x]}]}", "9:22", "column 'x' is not in the result"),
        ("expect: {checks: [{freshness: {within: 1h}}]}", "9:22", "a test has no such time"),
        ("expect: {error: DIVIDE_BY_ZERO}", "", "run with --spark"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_query(test: str, place: str, message: str) -> None:
    test = test.removeprefix("{").removesuffix("}") if test.startswith("{given") else test
    test = test.replace("]}, expect", "]}\n    expect")
    output = fails(f"{GIVEN}  - name: t\n    {test}\n")
    assert output.startswith("ERROR totals: t"), output
    assert message in output
    assert f"pipelines/tests/totals.yaml:{place}" in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: a file of tests is a mapping"),
        ("tests: []", "1:8: the file has no tests"),
        ("tests: [{name: a, expekt: []}]", "1:19: unknown key 'expekt'; did you mean 'expect'?"),
        ("tests: [{name: a}]", "needs the key 'expect'"),
        ("tests: [{name: a, expect: {}}]", "nothing is expected"),
        ("tests: [{name: a, expect: {rows: [], csv: x}}]", "not from rows and csv"),
        ("tests: [{name: a, expect: []}, {name: a, expect: []}]", "another test is called 'a'"),
        ("tests: [{name: a, given: {t: {}}, expect: []}]", "the table has no rows"),
        ("tests: [{name: a, expect: [}", "this is not YAML"),
        ("query: totalz\ntests: [{name: a, expect: []}]", "1:8: there is no query 'totalz'"),
        ("tests: [{name: a, name: b, expect: []}]", "key 'name' is given twice"),
    ],
)
def test_files_that_cannot_be_used(text: str, message: str) -> None:
    output = fails(text)
    assert message in output
    assert output.startswith("pipelines/tests/totals.yaml:")


def test_a_query_that_reads_more_than_is_given() -> None:
    output = fails("tests: [{name: a, expect: []}]")
    assert "reads the table 'sales', and the test gives no rows of it" in output


def test_a_clock_that_nobody_sets() -> None:
    output = fails("tests: [{name: a, given: {sales: []}, expect: []}]")
    assert "the query reads the clock" in output


def test_a_mistake_in_the_query_is_placed_there() -> None:
    write_query("totals", TOTALS.replace("sum(amount)", "sum(amont)"))
    output = fails("now: 2024-01-01\ntests: [{name: a, given: {sales: []}, expect: []}]")
    assert "pipelines/queries/totals.sql:5:18: " in output
    assert "column 'amont' not found; did you mean 'amount'?" in output
    assert "(line" not in output


def test_tables_of_other_queries_have_their_columns() -> None:
    write_query("report", "SELECT total + 1 AS more FROM totals")
    passes("tests: [{name: a, given: {totals: [{total: 1}]}, expect: [{more: 2}]}]", "report")
    output = fails("tests: [{name: a, given: {totals: [{sum: 1}]}, expect: []}]", "report")
    assert "there is no column 'sum'" in output


def test_partitioned_queries_get_their_window() -> None:
    write_query(
        "daily",
        "-- partitions: {by: daily, start: 2024-01-01, column: day}\n"
        "SELECT day, count(*) AS n FROM sales WHERE day >= :partition_start "
        "AND day < :partition_end GROUP BY day",
    )
    passes(
        "tests: [{name: a, parameters: {partition_start: 2024-01-01, partition_end: 2024-01-02}, "
        "given: {sales: [{day: 2024-01-01}, {day: 2024-01-02}]}, expect: [{day: 2024-01-01, n: 1}]}]",
        "daily",
    )


def test_a_stage_that_needs_spark_says_so() -> None:
    write_query("waves", "SELECT sin(w) AS s FROM sales")
    text = "tests: [{name: a, given: {sales: [{w: 0}]}, expect: [{s: 0}]}]"
    output = fails(text, "waves")
    assert "waves/stage_0 needs Spark" in output
    assert "1 of them need Spark: run with --spark" in output
    passes(text.replace("name: a,", "name: a, spark: only,"), "waves")


def test_junit() -> None:
    write_query("other", "SELECT 1 AS x")
    write_tests(GIVEN + '  - {name: "a \\x01 <b>", expect: {checks: [{row_count: {min: 1}}]}}\n'
                        "  - {name: wrong, expect: []}\n  - {name: left, spark: only, expect: []}\n"
                        "  - {name: bad, expect: [{x: 1}]}\n")  # fmt: skip
    write_tests("tests: [{name: a}]", "other")
    done = run("--junit", "out/junit.xml")
    assert done.exit_code == 1, done.output
    assert Path("out/junit.xml").exists(), done.output
    root = ET.parse("out/junit.xml").getroot()
    suites = {suite.get("name"): suite for suite in root}
    totals = suites["totals"]
    assert [totals.get(k) for k in ("tests", "failures", "errors", "skipped")] == [
        "4",
        "1",
        "1",
        "1",
    ]
    cases = {case.get("name"): [part.tag for part in case] for case in totals}
    assert cases == {
        "a \ufffd <b>": [],
        "wrong": ["failure"],
        "left": ["skipped"],
        "bad": ["error"],
    }
    assert "+ 1    │ 11" in (totals[1][0].text or "")
    assert suites["files of tests"].get("errors") == "1"


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark() -> None:
    """In a process of its own: it starts Spark."""
    write_query("waves", "SELECT sin(w) AS s, sum(shop) AS n FROM sales GROUP BY sin(w)")
    write_query("more", "SELECT amount + 1 AS a FROM sales")
    write_tests(
        "tests:\n- {name: a, given: {sales: [{w: 0, shop: 1}, {}]}, expect: [{s: 0, n: 1}, {}]}\n"
        "- {name: b, given: {sales: []}, expect: []}\n", "waves")  # fmt: skip
    write_tests(
        "tests:\n- {name: c, given: {sales: [{amount: 9223372036854775807}]}, "
        "expect: {error: ARITHMETIC_OVERFLOW}}\n"
        "- {name: d, given: {sales: [{amount: 1}]}, expect: {error: OVERFLOW}}\n", "more")  # fmt: skip
    write_tests(GIVEN + "  - {name: e, expect: [{shop: 1, day: 2024-01-31}, {shop: 2, day: 2024-01-31}]}")  # fmt: skip
    command = [sys.executable, "-m", "stagecoach", "test", "--spark", "--set", "engine.master=local[1]"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert lines == [
        "PASS more: c", "FAIL more: d", "PASS totals: e", "PASS waves: a", "PASS waves: b"
    ], done.stderr  # fmt: skip
    assert "an error with 'OVERFLOW' is expected, not 1 row" in done.stdout
    assert done.returncode == 1


@pytest.mark.slow
@pytest.mark.spark
@in_test_all
def test_recording() -> None:
    """In a process of its own: it starts Spark."""
    rows = {
        "shop": pa.array([1, 1, 2], pa.int32()), "amount": [5, 6, 7], "day": pa.array([0, 1, 2], pa.date32()),
        "note": ["Ada's: \"é\"\n", "Ada's: \"é\"\n", None], "price": pa.array([None, None, None], pa.decimal128(10, 2)),
        "w": [float("nan"), -0.0, 1e300],
    }  # fmt: skip
    Path("pipelines/data/sales").mkdir(parents=True)
    pq.write_table(pa.table(rows), "pipelines/data/sales/a.parquet")
    write_query(
        "notes",
        "-- parameters: {least: 0}\n"
        "SELECT note, max(w) AS w, count(*) AS n, max(price) AS p, current_date() >= DATE '2024-01-01' AS c "
        "FROM sales WHERE amount > :least GROUP BY note",
    )
    command = [sys.executable, "-m", "stagecoach", "test", "--set", "engine.master=local[1]"]
    recording = ["--record", "notes", "--mask", "note", "--where", "sales: shop < 9", "--param", "least=1"]  # fmt: skip
    done = subprocess.run([*command, *recording], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = Path("pipelines/tests/notes.yaml").read_text()
    assert "Ada" not in text
    assert text.count("masked_1") == 3
    assert "shop" not in text, "a column that is not needed"
    assert '{note: "masked_1", w: "nan", n: 2, p: null, c: true}' in text
    done_here = run("-k", "notes")
    assert done_here.exit_code == 0, done_here.output
    again = subprocess.run([*command, *recording], capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "already exists and is not changed" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--record", "totalz"], "there is no query 'totalz'; did you mean 'totals'?"),
        (["--record", "totals", "--where", "sales"], "is not TABLE: CONDITION"),
        (["--record", "totals", "--where", "sale: x"], "does not read the table 'sale'"),
        (["--mask", "x"], "--mask belongs to --record QUERY"),
    ],
)
def test_what_cannot_be_recorded(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_choosing_tests() -> None:
    write_tests(GIVEN + "  - {name: one, expect: {checks: [{row_count: {min: 1}}]}}\n"
                        "  - {name: two, expect: []}\n")  # fmt: skip
    write_query("other", "SELECT 1 AS x")
    write_tests("tests: [{name: three, expect: [{x: 1}]}]", "other")
    assert run("-k", "ONE").exit_code == 0
    assert run("-k", "two").exit_code == 1
    assert "1 passed" in run("pipelines/tests/other.yaml").output
    assert "1 passed" in run("pipelines/queries/other.sql").output
    assert run("-k", "other", "-q").output.startswith("1 passed")
    assert "there is no file or folder x" in run("x").output
    assert run("x").exit_code == 2


def test_a_project_without_tests() -> None:
    done = run()
    assert done.exit_code == 2
    assert "there are no tests in pipelines/tests" in done.output


def test_the_published_schema_is_up_to_date() -> None:
    published = (ROOT / "docs" / "query-tests.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(), "run `make query-schema`"
    assert run("--schema").output == published


def test_the_schema_describes_every_key_and_the_examples_have_known_ones() -> None:
    schema = published_keys()
    # What may be a list alone, too, has its keys in a definition of its own.
    mappings = [d for d in schema["$defs"].values() if "anyOf" not in d]
    for definition in (schema, *mappings):
        assert definition["additionalProperties"] is False
        for name, body in definition["properties"].items():
            assert body.get("description") or "$ref" in body, name
    known = schema["$defs"]["QueryTest"]["properties"]
    for path in (ROOT / "pipelines/tests").glob("*.yaml"):
        content = load_yaml(path.read_text(encoding="utf-8"))
        assert set(content) <= set(schema["properties"])
        assert {key for test in content["tests"] for key in test} <= set(known)


def test_the_example_project_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = run()
    assert done.exit_code == 0, done.output
    assert "4 passed" in done.output


def test_neither_spark_nor_dagster_is_loaded() -> None:
    write_tests(GIVEN + "  - {name: one, expect: {checks: [{row_count: {min: 1}}]}}\n")
    program = (
        "import sys\nfrom stagecoach.commands.main import cli\n"
        "cli(['test'], standalone_mode=False)\n"
        "import json; print(json.dumps([n for n in ('pyspark', 'dagster') if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_the_example_of_the_user_guide_passes() -> None:
    page = (ROOT / "docs/user-guide/query-tests.md").read_text(encoding="utf-8")
    sql, text = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("sql", "yaml"))
    assert sql is not None
    assert text is not None
    columns = "{o_custkey: bigint, o_totalprice: 'decimal(15,2)', o_orderdate: date}"
    Path("pipelines/catalog.yaml").write_text(
        f"tables: {{orders: {{location: x, columns: {columns}}}}}"
    )
    write_query("totals", sql[1])
    passes(text[1])
