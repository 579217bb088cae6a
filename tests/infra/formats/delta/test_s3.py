"""Delta tables on S3: their logs are read by deltalake's client, the rest by ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.delta.opening import storage_options
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from tests.infra.formats.delta.handmade import HandmadeTable, catalog_of, field
from tests.infra.formats.iceberg.answers import FORCED, rows, run
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server


@pytest.mark.s3
def test_a_table_on_s3(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = s3_server.new_root()
    folder = s3_server.folder / root.removeprefix("s3://") / "a b ü"
    mode = {"delta.columnMapping.mode": "name"}
    table = HandmadeTable(folder, ["deletionVectors", "columnMapping"], mode)
    columns = [field("n", "long", id_=1, physical="k"), field("k", "string", id_=2, physical="s"), field("p", "string", id_=3, physical="q")]  # fmt: skip
    table.schema(*columns, partitioned=["p"])
    given = pa.table({"k": pa.array(range(1000)), "s": [f"s{i % 7}" for i in range(1000)]})
    one, two, three = (table.data(given, {"q": q}, group_rows=100) for q in ("x y", "%41", None))
    table.commit(one, two, three)
    one = table.delete(one, [0, 550, 999])
    table.delete(two, [0, 551], "i")
    how: dict[str, Any] = {"storage_options": s3_server.options}
    url = f"{root}/a b ü"
    catalog = catalog_of(tmp_path, s3_server.options, t=url)
    total = 3 * sum(range(1000)) - 550 - 999 - 551
    found = rows(catalog, "SELECT count(*) AS c, sum(n) AS s FROM t", tmp_path, **how)
    assert found == [{"c": 2995, "s": total}]
    sql = "SELECT n, p FROM t WHERE n BETWEEN 549 AND 551 AND k <> 's3' AND p IS NOT NULL ORDER BY n, p"  # fmt: skip
    kept = [(550, "%41"), (551, "x y")]
    assert 549 % 7 == 3
    assert rows(catalog, sql, tmp_path, **how) == [{"n": n, "p": p} for n, p in kept]
    at = "SELECT count(*) AS c FROM t {}"
    assert rows(catalog, at.format("VERSION AS OF 1"), tmp_path, **how) == [{"c": 2997}]
    late = at.format("TIMESTAMP AS OF '2999-01-01 00:00:00Z'")
    assert rows(catalog, late, tmp_path, **how) == [{"c": 2995}]
    table.checkpoint("classic")
    found, _ = run(catalog, "SELECT sum(n) AS s FROM t GROUP BY p = ''", tmp_path, FORCED, **how)  # fmt: skip
    assert sum(row["s"] for row in found) == total
    # Without options, AWS's own configuration counts.
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    found = rows(catalog_of(tmp_path, t=url), at.format(""), tmp_path)
    assert found == [{"c": 2995}]
    with pytest.raises(CatalogError, match="has no Delta log"):
        plan_query("SELECT * FROM t", catalog_of(tmp_path, s3_server.options, t=f"{root}/none"))


def test_a_server_that_is_away_is_a_failure_of_storage(tmp_path: Path) -> None:
    options = StorageOptions(
        endpoint_url="http://127.0.0.1:9", access_key="testkey1", secret_key="testsecret1",
        timeout_seconds=1, retry_seconds=1,
    )  # fmt: skip
    with pytest.raises(StorageError, match="cannot read the Delta log of s3://bucket/t") as raised:
        plan_query("SELECT * FROM t", catalog_of(tmp_path, options, t="s3://bucket/t"))
    assert "testsecret1" not in str(raised.value)


def test_options_are_those_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "config"
    config.write_text(
        "[profile lake]\nregion = eu-west-3\naws_access_key_id = lakes_own_id\n"
        "aws_secret_access_key = lakes_own_secret\nendpoint_url = https://s3.example.org\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    found = storage_options(StorageOptions(profile="lake"))
    assert {name: found[name] for name in sorted(found) if name.startswith("aws")} == {
        "aws_access_key_id": "lakes_own_id",
        "aws_endpoint": "https://s3.example.org",
        "aws_region": "eu-west-3",
        "aws_secret_access_key": "lakes_own_secret",
        "aws_virtual_hosted_style_request": "false",
    }
    found = storage_options(StorageOptions(profile="lake", path_style=False, region="x", access_key="mine_is_another", secret_key="s" * 9, session_token="t" * 9))  # fmt: skip
    assert (found["aws_virtual_hosted_style_request"], found["aws_region"]) == ("true", "x")
    assert (found["aws_access_key_id"], found["aws_session_token"]) == ("mine_is_another", "t" * 9)
    with pytest.raises(StorageError, match="none"):
        storage_options(StorageOptions(profile="none"))
