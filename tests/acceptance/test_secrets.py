"""Marked secrets go in; everything that a query over S3 writes and says is searched for them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from stagecoach.infra.storage.stores import open_store
from tests.acceptance.processes import COMMAND, FORCED, environment, planner_arguments
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.s3_server import s3_server as s3_server
from tests.tpch import Tpch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.timeout(600),
]

WRONG_KEY, WRONG_SECRET, TOKEN = "markedkeyid77", "markedsecret88", "markedtoken99"
URL_USER, URL_PASSWORD = "markeduser55", "markedpassword66"
SPARK_SECRET = "markedsparkkey44"
SECRETS = (
    *(ACCESS_KEY, SECRET_KEY, WRONG_KEY, WRONG_SECRET),
    *(TOKEN, URL_USER, URL_PASSWORD, SPARK_SECRET),
)

REFUSED = {"access_key": WRONG_KEY, "secret_key": WRONG_SECRET, "session_token": TOKEN}

GOOD = "SELECT r_name, count(*) AS n FROM region JOIN nation ON r_regionkey = n_regionkey GROUP BY r_name"
# Fails in DuckDB, then in Spark, then as a whole query: each failure leaves a log.
BAD = "SELECT n_name, sum(1 / (n_regionkey - n_regionkey)) AS s FROM nation GROUP BY n_name"


DEFINITIONS = """
from stagecoach.assets import build_definitions

defs = build_definitions(queries="queries", catalog="catalog.yaml", storage={root!r}, plans="plans")
"""


def run(folder: Path, options: Mapping[str, str], *command: str, **more: str) -> str:
    """Run a program of ours with the options in the environment; what it says."""
    env = environment(
        STAGECOACH_STORAGE_OPTIONS=json.dumps(options),
        STAGECOACH_SPARK_CONF=json.dumps({"spark.hadoop.fs.s3a.secret.key": SPARK_SECRET}),
        STAGECOACH_MASTER="local[2]",
        AWS_EC2_METADATA_DISABLED="true",
        **more,
    )
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=400
    )
    return done.stdout + done.stderr


def write_project(folder: Path, tpch: Tpch, server: S3Server) -> tuple[dict[str, str], str]:
    """Tables on the server, their catalog and two queries; how to reach it, and a storage root."""
    tables = server.new_root()
    store = open_store(tables, server.options)
    for name in ("region", "nation"):
        for path in sorted((tpch.folder / name).glob("*.parquet")):
            store.write_bytes(f"{name}/{path.name}", path.read_bytes())
    lines = [f"  {name}: {{location: {tables}/{name}}}" for name in ("region", "nation")]
    (folder / "catalog.yaml").write_text("\n".join(["tables:", *lines]) + "\n")
    (folder / "queries").mkdir()
    (folder / "queries" / "good.sql").write_text(GOOD)
    (folder / "queries" / "bad.sql").write_text(BAD)
    given = {
        "endpoint_url": server.endpoint_url,
        "region": "us-east-1",
        "access_key": ACCESS_KEY,
        "secret_key": SECRET_KEY,
    }
    return given, server.new_root()


def assert_without_secrets(content: bytes, what: str) -> None:
    for secret in SECRETS:
        place = content.find(secret.encode())
        assert place < 0, f"{what}: {content[max(0, place - 1000) : place + 200]!r}"


def stored_values(database: Path) -> Iterator[bytes]:
    """Every value of a SQLite database, those that Dagster compresses as they were before."""
    with closing(sqlite3.connect(database)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in names:
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                for value in row:
                    content = value if isinstance(value, bytes) else str(value).encode()
                    try:
                        yield zlib.decompress(content)
                    except zlib.error:
                        yield content


def test_no_secret_is_written_or_said(tpch: Tpch, s3_server: S3Server, tmp_path: Path) -> None:
    given, root = write_project(tmp_path, tpch, s3_server)
    refused = {**given, **REFUSED}
    away = {**given, "endpoint_url": f"http://{URL_USER}:{URL_PASSWORD}@127.0.0.1:9"}
    more = ["--catalog", "catalog.yaml", "--storage", root, *planner_arguments(FORCED)]
    said = {
        name: run(tmp_path, options, *COMMAND, "query", f"queries/{file}.sql", *more, *debug)
        for name, options, file, *debug in (
            ("good", given, "good"),
            ("bad", given, "bad", "--debug"),
            ("refused", refused, "good", "--debug"),
            ("away", away, "good", "--debug"),
        )
    }
    assert "AFRICA" in said["good"]
    assert "DIVIDE_BY_ZERO" in said["bad"]
    assert "cannot" in said["refused"]
    assert "has credentials in it" in said["away"]
    assert "***@127.0.0.1" in said["away"], "the address is shown, its credentials are not"
    shown = {name for name, text in said.items() if "Traceback (most recent call last)" in text}
    assert shown == {"bad", "refused", "away"}
    for name, text in said.items():
        assert_without_secrets(text.encode(), f"what the run '{name}' said")
    # All that was stored: plans, snapshots, pointers, manifests, events, pages, logs, shuffles.
    stored = sorted(p for p in s3_server.folder.rglob("*") if p.is_file())
    names = {p.name for p in stored}
    assert {"snapshot.json", "manifest.json", "events.jsonl"} <= names
    assert any(p.suffix == ".log" for p in stored), "the failed stage has left its log"
    # ... and all that was written here, by Dagster and Spark among others.
    for path in [*stored, *(p for p in tmp_path.rglob("*") if p.is_file())]:
        assert_without_secrets(path.read_bytes(), str(path))


def test_no_secret_is_in_plans_or_in_dagster(
    tpch: Tpch, s3_server: S3Server, tmp_path: Path
) -> None:
    given, root = write_project(tmp_path, tpch, s3_server)
    (tmp_path / "defs.py").write_text(DEFINITIONS.format(root=root))
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    project = ["--catalog", "catalog.yaml", "--project", "queries", *planner_arguments(FORCED)]
    said = {"compile": run(tmp_path, given, *COMMAND, "compile", *project)}
    materialize = [sys.executable, "-m", "dagster", "asset", "materialize", "-f", "defs.py"]
    for name, options in (("given", given), ("refused", {**given, **REFUSED})):
        command = [*materialize, "--select", "*"]
        said[name] = run(tmp_path, options, *command, DAGSTER_HOME=str(home))
    assert sorted(p.name for p in (tmp_path / "plans").iterdir()) == ["bad.json", "good.json"]
    values = [value for path in home.rglob("*.db") for value in stored_values(path)]
    events = b"\n".join(values)
    # It looks where runs leave something: what was made, what failed and why, how runs are set up.
    for expected in (
        b"stagecoach/rows",
        b"DIVIDE_BY_ZERO",
        b"does not know the access key",
        b'"storage_root"',
    ):
        assert expected in events, expected
    for value in values:
        assert_without_secrets(value, "Dagster's storage")
    for name, text in said.items():
        assert_without_secrets(text.encode(), f"what '{name}' said")
    for folder in (s3_server.folder, tmp_path):
        for path in folder.rglob("*"):
            if path.is_file():
                assert_without_secrets(path.read_bytes(), str(path))
