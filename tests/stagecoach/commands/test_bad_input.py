"""What users get wrong, and what the machine gets wrong: each with a readable block, no traceback.

The first part needs no Spark. The second runs many queries in one process of the real command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stagecoach.commands.main import cli
from tests.share import in_test_all

ROWS = 20_000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with good tables and every kind of bad one."""
    root = tmp_path_factory.mktemp("project")
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "name": [f"name {i}" for i in range(ROWS)],
            "born": pa.array([0] * ROWS, pa.date32()),
        }
    )
    other = pa.table({"id": pa.array(["x"]), "extra": pa.array([1.5])})
    for folder in ("pets", "owners", "mixed", "cut", "damaged", "nothing"):
        (root / folder).mkdir()
    pq.write_table(table, root / "pets" / "a.parquet")
    pq.write_table(table.slice(0, 10), root / "owners" / "a.parquet")
    pq.write_table(table, root / "mixed" / "a.parquet")
    pq.write_table(other, root / "mixed" / "b.parquet")
    whole = (root / "pets" / "a.parquet").read_bytes()
    (root / "cut" / "a.parquet").write_bytes(whole[: len(whole) // 2])
    # The footer is whole, so that planning succeeds; the pages are not.
    (root / "damaged" / "a.parquet").write_bytes(whole[:4] + b"\xff" * 40_000 + whole[40_004:])
    tables = ["pets", "owners", "mixed", "cut", "damaged", "nothing", "missing"]
    lines = ["tables:", *(f"  {name}: {{location: {name}}}" for name in tables)]
    (root / "catalog.yaml").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(project)
    monkeypatch.delenv("STAGECOACH_STORAGE", raising=False)
    yield


def query(sql: str, *args: str) -> Result:
    runner = CliRunner()
    return runner.invoke(cli, ["query", "-", "--catalog", "catalog.yaml", *args], input=sql)


@dataclass(frozen=True)
class Case:
    """A query that cannot be planned, and what its block must hold."""

    sql: str
    expected: tuple[str, ...]
    args: tuple[str, ...] = ()


CASES = {
    "syntax error": Case("SELECT id\nFROM pets\nWHERE id >", ("syntax error", "standard input:3")),
    "not closed": Case("SELECT (id FROM pets", ("syntax error", "standard input:1")),
    "quote not closed": Case("SELECT 'abc FROM pets", ("error:", "standard input:1")),
    "nothing": Case("-- only a comment", ("no statement",)),
    "insert": Case("INSERT INTO pets VALUES (1)", ("INSERT", "only a SELECT", ":1:1")),
    "create": Case("CREATE TABLE t (a INT)", ("CREATE", "only a SELECT")),
    "drop": Case("DROP TABLE pets", ("DROP", "only a SELECT")),
    "set": Case("SET spark.sql.ansi.enabled = false", ("SET", "only a SELECT")),
    "several statements": Case("SELECT 1; SELECT 2", ("2 statements", "exactly one SELECT")),
    "unknown table": Case("SELECT * FROM pest", ("pest", "pets", ":1:15")),
    "unknown column": Case("SELECT id,\n  nmae FROM pets", ("nmae", "name", ":2:3", "  ^")),
    "unknown column of a table": Case("SELECT p.nmae FROM pets p", ("nmae", "name")),
    "reflect": Case(
        "SELECT reflect('java.lang.System', 'exit', 1) FROM pets", ("reflect", "not allowed")
    ),
    "java_method": Case("SELECT java_method('java.lang.Math', 'random')", ("not allowed",)),
    "path table": Case("SELECT * FROM parquet.`/etc/passwd`", ("reads a path", "catalog")),
    "csv path table": Case("SELECT * FROM csv.`/etc/passwd`", ("reads a path",)),
    "table function that opens a file": Case(
        "SELECT * FROM read_csv('/etc/passwd')", ("read_csv", "not allowed")
    ),
    "read_files": Case("SELECT * FROM read_files('/etc')", ("read_files", "not allowed")),
    "missing location": Case("SELECT * FROM missing", ("'missing'", "does not exist")),
    "empty location": Case("SELECT * FROM nothing", ("'nothing'", "no data file")),
    "truncated parquet": Case("SELECT * FROM cut", ("'cut'", "a.parquet")),
    "differing schemas": Case("SELECT * FROM mixed", ("'mixed'", "b.parquet", "id")),
    "parameter missing": Case("SELECT :size", ("'size' has no value", "--param size=")),
    "parameter unknown": Case(
        "SELECT id FROM pets WHERE id = :size",
        ("unknown parameter 'sise'", "did you mean 'size'?"),
        ("--param", "sise=1"),
    ),
    "parameter of the wrong type": Case(
        "-- parameters: {day: {type: date}}\nSELECT id FROM pets WHERE born < :day",
        ("'day' must be of type date, not 'soon'", "day=1995-03-15"),
        ("--param", "day=soon"),
    ),
    "front matter": Case("/*---\nowner: me\n---*/ SELECT 1", ("unknown key 'owner'", "owners")),
    "duckdb cannot": Case(
        "SELECT percentile_approx(id, 0.5) FROM pets",
        ("'auto' lets Spark run it",),
        ("--engine", "duckdb"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_run(name: str, inside: None) -> None:
    case = CASES[name]
    result = query(case.sql, *case.args)
    assert result.exit_code == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    for text in case.expected:
        assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "does not exist"),
        ("tables: [", "is not YAML"),
        ("table: {}", "unknown key 'table'"),
        ("tables: {a: {}}", "'location' is missing"),
        ("tables: {a: {location: x, format: avro}}", "format 'avro' is not supported"),
    ],
)
def test_bad_catalog(tmp_path: Path, text: str | None, expected: str) -> None:
    path = tmp_path / "c.yaml"
    if text is not None:
        path.write_text(text)
    result = CliRunner().invoke(cli, ["query", "-", "--catalog", str(path)], input="SELECT 1")
    assert result.exit_code == 2
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


def test_table_of_a_scheme_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("tables: {a: {location: 'ftp://x'}}")
    result = CliRunner().invoke(
        cli, ["query", "-", "--catalog", str(path)], input="SELECT * FROM a"
    )
    assert result.exit_code == 1
    assert "cannot open ftp://x: FTP is not supported" in result.stderr
    assert "Traceback" not in result.stderr


def test_storage_that_cannot_be_written(inside: None, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = query("SELECT id FROM pets", "--storage", str(tmp_path / "file" / "storage"))
    assert result.exit_code == 1
    assert "cannot write" in result.stderr
    assert str(tmp_path / "file") in result.stderr
    assert "Traceback" not in result.stderr


def test_storage_of_an_unknown_scheme(inside: None) -> None:
    result = query("SELECT id FROM pets", "--storage", "gopher://x/y")
    assert result.exit_code == 1
    assert "no file system for scheme 'gopher'" in result.stderr


# ------------------------------------------------------------------ with Spark, in one process

RUNTIME = {
    "good": ("SELECT count(*) AS n FROM pets", ()),
    "divide": ("SELECT id / (id - 5) AS x FROM pets", ("DIVIDE_BY_ZERO",)),
    "overflow": (
        "SELECT CAST(id AS INT) + 2147483647 AS x FROM pets",
        ("ARITHMETIC_OVERFLOW",),
    ),
    "cast": ("SELECT CAST(name AS INT) AS x FROM pets", ("CAST_INVALID_INPUT", "name")),
    "function": ("SELECT no_such_function(id) FROM pets", ("no_such_function",)),
    # The planner refuses these; Spark is asked, and says why.
    "types": ("SELECT id + born FROM pets WHERE born > 5", ("DATATYPE_MISMATCH", ":1:34")),
    "ambiguous": (
        "SELECT id FROM pets, owners WHERE pets.id = owners.id",
        ("AMBIGUOUS_REFERENCE", "id", ":1:8"),
    ),
    "sum": ("SELECT sum(born) FROM pets", ("DATATYPE_MISMATCH", '"DATE"', ":1:8")),
    "damaged": ("SELECT sum(id) FROM damaged", ("a.parquet",)),
    "after": ("SELECT max(id) AS n FROM pets", ()),
}


def start(project: Path, *args: str, shell_prefix: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stagecoach.commands.main", "query", *args]
    if shell_prefix:
        quoted = " ".join(f"'{part}'" for part in command)
        command = ["unshare", "-rm", "sh", "-c", f"{shell_prefix} && exec {quoted}"]
    environment = {k: v for k, v in os.environ.items() if k != "STAGECOACH_STORAGE"}
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def batch(project: Path) -> Iterator[tuple[subprocess.CompletedProcess[str], Path]]:
    """All runtime mistakes, in one process with good queries around them."""
    folder = project / "queries"
    folder.mkdir()
    for name, (sql, _) in RUNTIME.items():
        (folder / f"{name}.sql").write_text(sql)
    files = [f"queries/{name}.sql" for name in RUNTIME]
    output = project / "out"
    done = start(
        project, *files, "--catalog", "catalog.yaml", "--output-dir", str(output),
        "--master", "local[2]",
    )  # fmt: skip
    yield done, output


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", RUNTIME)
def test_runtime_mistake(name: str, batch: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    done, output = batch
    expected = RUNTIME[name][1]
    blocks = [b for b in done.stderr.split("error: ")[1:] if f"queries/{name}.sql" in b]
    written = output / f"{name}.parquet"
    if not expected:
        assert not blocks
        assert pq.read_table(written).num_rows == 1
        return
    assert not written.exists()
    assert len(blocks) == 1, done.stderr
    for text in expected:
        assert text in blocks[0]


@pytest.mark.slow
@pytest.mark.spark
def test_batch_ends_with_1_and_without_noise(
    batch: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, _ = batch
    assert done.returncode == 1
    assert done.stdout == ""
    assert (
        "8 of 10 queries failed: "
        "divide, overflow, cast, function, types, ambiguous, sum, damaged" in done.stderr
    )
    for noise in ("Traceback", "WARN", "py4j", "at org.apache", "java.lang", "Setting default"):
        assert noise not in done.stderr


@pytest.mark.slow
@pytest.mark.spark
@in_test_all
def test_disk_full_while_a_stage_writes(project: Path, tmp_path: Path) -> None:
    storage = tmp_path / "small"
    storage.mkdir()
    mount = f"mount -t tmpfs -o size=64k tmpfs '{storage}'"
    allowed = (
        shutil.which("unshare")
        and not subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False
        ).returncode
    )
    if not allowed:
        pytest.skip("this machine does not let a user mount a small file system")
    (project / "all.sql").write_text("SELECT name, id, id * 7919 % 20011 AS h FROM pets")
    done = start(
        project, "all.sql", "--catalog", "catalog.yaml", "--storage", str(storage),
        "--master", "local[1]", "--format", "csv", shell_prefix=mount,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "no space left on the device" in done.stderr.lower()
    assert str(storage) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_plans_and_queries_are_told_apart(inside: None) -> None:
    def said(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["query", *arguments, "--catalog", "catalog.yaml"])
        assert result.exit_code == 2
        return result.output

    Path("q.sql").write_text("SELECT 1")
    Path("cut.json").write_text('{"format_version": 2, "gra')
    Path("other.json").write_text('{"a": 1}')
    assert "run it with `query --plan cut.json`" in said("cut.json")
    assert "error: q.sql is SQL, not a compiled plan; run it as a query" in said("--plan", "q.sql")
    cut = said("--plan", "cut.json")
    assert "error: cut.json: this is not a compiled plan, or a part of it is missing" in cut
    assert "write it with `stagecoach compile`" in cut
    assert "error: other.json: this is not a compiled plan; write" in said("--plan", "other.json")


@pytest.mark.parametrize(
    ("module", "extra", "code"),
    [
        ("polars", "polars", "session.query('EXPLAIN SELECT 1').to_polars()"),
        ("deltalake", "delta", "session.catalog.table('lake')"),
        ("pyiceberg", "iceberg", "session.catalog.table('ice')"),
    ],
)
def test_a_missing_extra_is_named(tmp_path: Path, module: str, extra: str, code: str) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "catalog.yaml").write_text(
        "tables:\n  lake: {location: lake, format: delta}\n"
        "  ice: {format: iceberg, table: a.b, catalog: {name: c, type: sql, uri: 'sqlite:///x.db'}}\n"
    )
    program = f"""
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {module!r} else real(name, *rest)
sys.modules[{module!r}] = None
import stagecoach
from stagecoach.errors import StagecoachError
try:
    session = stagecoach.connect({str(tmp_path / "catalog.yaml")!r}, {str(tmp_path / "st")!r})
    {code}
except StagecoachError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert f"pip install 'stagecoach[{extra}]'" in done.stdout, done.stdout + done.stderr
