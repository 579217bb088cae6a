"""Settings of Spark that decide which rows a query gives are part of what an output is of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.infra.runtime.planning.fingerprint import stage_fingerprints
from stagecoach.infra.spark.row_conf import row_conf
from stagecoach.planner.planning import plan_query

LEGACY = "spark.sql.legacy.castComplexTypesToString.enabled"


def test_all_but_what_is_known_to_change_no_row_counts() -> None:
    conf = {
        LEGACY: "true",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.ansi.enabled": "false",
        "spark.executor.memory": "2g",
    }
    assert row_conf(conf) == {LEGACY: "true", "spark.sql.mapKeyDedupPolicy": "LAST_WIN"}


def test_another_setting_is_another_output(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t" / "0.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}}", encoding="utf-8")
    catalog = load_catalog(tmp_path / "catalog.yaml")
    graph = plan_query("SELECT sum(a) AS s FROM t", catalog)
    snapshot = take_snapshot(catalog, ["t"])

    def fingerprint(conf: dict[str, str]) -> str:
        found = stage_fingerprints(graph, snapshot, {}, root_run_id="r", spark_conf=conf)
        return found[graph.head.stage_id]

    assert fingerprint({}) == fingerprint({"spark.sql.shuffle.partitions": "3"})
    assert fingerprint({LEGACY: "true"}) not in (fingerprint({}), fingerprint({LEGACY: "false"}))
