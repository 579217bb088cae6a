"""Marked secrets go in; everything that a query over S3 writes and says is searched for them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.storage.stores import open_store
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
SECRETS = (ACCESS_KEY, SECRET_KEY, WRONG_KEY, WRONG_SECRET, TOKEN, URL_USER, URL_PASSWORD)

GOOD = "SELECT r_name, count(*) AS n FROM region JOIN nation ON r_regionkey = n_regionkey GROUP BY r_name"
# Fails in DuckDB, then in Spark, then as a whole query: each failure leaves a log.
BAD = "SELECT n_name, sum(1 / (n_regionkey - n_regionkey)) AS s FROM nation GROUP BY n_name"


def run(folder: Path, tpch: Tpch, root: str, options: Mapping[str, str], *files: str) -> str:
    """Run `stagecoach query` with the options in the environment; what it says."""
    env = environment(
        STAGECOACH_STORAGE_OPTIONS=json.dumps(options),
        STAGECOACH_MASTER="local[2]",
        AWS_EC2_METADATA_DISABLED="true",
    )
    where = ["--catalog", "catalog.yaml", "--storage", root]
    done = subprocess.run(
        [*COMMAND, "query", *files, *where, *planner_arguments(FORCED)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    return done.stdout + done.stderr


def test_no_secret_is_written_or_said(tpch: Tpch, s3_server: S3Server, tmp_path: Path) -> None:
    tables, root = s3_server.new_root(), s3_server.new_root()
    store = open_store(tables, s3_server.options)
    for name in ("region", "nation"):
        for path in sorted((tpch.folder / name).glob("*.parquet")):
            store.write_bytes(f"{name}/{path.name}", path.read_bytes())
    lines = [f"  {name}: {{location: {tables}/{name}}}" for name in ("region", "nation")]
    (tmp_path / "catalog.yaml").write_text("\n".join(["tables:", *lines]) + "\n")
    (tmp_path / "good.sql").write_text(GOOD)
    (tmp_path / "bad.sql").write_text(BAD)
    given = {
        "endpoint_url": s3_server.endpoint_url,
        "region": "us-east-1",
        "access_key": ACCESS_KEY,
        "secret_key": SECRET_KEY,
    }
    refused = {**given, "access_key": WRONG_KEY, "secret_key": WRONG_SECRET, "session_token": TOKEN}
    away = {**given, "endpoint_url": f"http://{URL_USER}:{URL_PASSWORD}@127.0.0.1:9"}
    said = {
        "good": run(tmp_path, tpch, root, given, "good.sql"),
        "bad": run(tmp_path, tpch, root, given, "bad.sql"),
        "refused": run(tmp_path, tpch, root, refused, "good.sql"),
        "away": run(tmp_path, tpch, root, away, "good.sql"),
    }
    assert "AFRICA" in said["good"]
    assert "DIVIDE_BY_ZERO" in said["bad"]
    assert "cannot" in said["refused"]
    assert "has credentials in it" in said["away"]
    assert "***@127.0.0.1" in said["away"], "the address is shown, its credentials are not"
    for run_name, text in said.items():
        for secret in SECRETS:
            assert secret not in text, f"what the run '{run_name}' said: {text[-3000:]}"
    # All that was stored: plans, snapshots, pointers, manifests, events, pages, logs, shuffles.
    stored = sorted(p for p in s3_server.folder.rglob("*") if p.is_file())
    names = {p.name for p in stored}
    assert {"snapshot.json", "manifest.json", "events.jsonl"} <= names
    assert any(p.suffix == ".log" for p in stored), "the failed stage has left its log"
    # ... and all that was written here, by Dagster and Spark among others.
    for path in [*stored, *(p for p in tmp_path.rglob("*") if p.is_file())]:
        content = path.read_bytes()
        for secret in SECRETS:
            assert secret.encode() not in content, str(path)
