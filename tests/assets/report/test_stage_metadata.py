"""What materializations tell: estimates, decisions, savings, versions, plans that no longer fit."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from stagecoach.assets import EngineResource, StageMetadata, build_definitions
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.assets.plans.estimates import planned_rows
from stagecoach.assets.report.stage_metadata import decisions, plan_warning, skew
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.snapshot import Snapshot, TableSnapshot
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.runtime.stages.run import StageResult
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import Stage
from tests.planner.tpch import FORCED, tpch_graph
from tests.stage_outputs import commit_files, write_map_file

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
COUNTED = "SELECT k, count(*) AS n FROM sales WHERE day > 2 GROUP BY k"


def write(root: Path, rows: int) -> None:
    for day in range(1, 5):
        folder = root / "sales" / f"day={day}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"k": pa.array(range(rows))}), folder / "0.parquet")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A table of four partitions, a query over it, and a query over that query."""
    write(tmp_path, 5)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "counted.sql").write_text(COUNTED)
    (tmp_path / "queries" / "doubled.sql").write_text("SELECT k, n * 2 AS m FROM counted")
    (tmp_path / "catalog.yaml").write_text("tables: {sales: {location: sales}}")
    return tmp_path


@pytest.fixture
def definitions(
    project: Path, spark: SparkSession, spark_settings: EngineSettings
) -> dg.Definitions:
    names = ("master", "parallelism", "memory_bytes", "writer_memory_bytes", "spill_dir")
    return build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        engine=EngineResource(
            catalog=str(project / "catalog.yaml"),
            storage_root=str(project / "store"),
            settings={name: str(getattr(spark_settings, name)) for name in names},
        ),
        options=PlannerOptions(force_distribution=True, num_partitions=3, inline_bytes=0),
    )


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


Told = dict[str, dict[str, "dg.MetadataValue[object]"]]


def run(definitions: dg.Definitions, instance: dg.DagsterInstance, query: str) -> Told:
    """Run a query; the metadata of its steps."""
    job = definitions.resolve_job_def(f"run_{query}")
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert result.success
    return {
        event.asset_key.to_user_string(): dict(event.materialization.metadata)
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }


@pytest.mark.slow
@pytest.mark.spark
def test_runs_tell_what_they_did_and_saved(
    definitions: dg.Definitions, project: Path, instance: dg.DagsterInstance
) -> None:
    first = run(definitions, instance, "counted")
    leaf = first["counted/stage_0"]
    assert isinstance(leaf["stagecoach/decisions"], dg.MarkdownMetadataValue)
    decisions = str(leaf["stagecoach/decisions"].value)
    assert "- **engine** duckdb: " in decisions
    assert "- **tasks** 1 for " in decisions
    assert "less than `min_task_bytes`" in decisions
    assert "- **sales** 2 of 4 files, 10 of 20 rows; 2 left out" in decisions
    assert "- **output** shuffle: " in decisions
    for name in ("rows", "bytes", "bytes_read", "tasks", "partitions", "estimated_rows"):
        assert isinstance(leaf[f"stagecoach/{name}"], dg.IntMetadataValue), name
    for name in ("seconds", "skew", "estimate_factor"):
        assert isinstance(leaf[f"stagecoach/{name}"], dg.FloatMetadataValue), name
    assert leaf["stagecoach/reused"].value is False
    assert "stagecoach/saved_bytes" not in leaf
    assert "stagecoach/plan_warning" not in leaf

    again = run(definitions, instance, "counted")["counted/stage_0"]
    assert again["stagecoach/reused"].value is True
    saved = again["stagecoach/saved_bytes"].value
    assert saved == leaf["stagecoach/bytes_read"].value + leaf["stagecoach/bytes"].value  # type: ignore[operator]
    assert 0 < again["stagecoach/saved_seconds"].value <= leaf["stagecoach/seconds"].value  # type: ignore[operator]
    assert "stagecoach/bytes_read" not in again
    assert again["stagecoach/decisions"] == leaf["stagecoach/decisions"]

    reader = run(definitions, instance, "doubled")["doubled"]
    assert reader["stagecoach/table_versions"].value == {"counted": 1}
    told = StageMetadata.from_dagster(reader)
    assert told.table_versions == {"counted": 1}

    write(project, 500)
    grown = run(definitions, instance, "counted")
    leaf = grown["counted/stage_0"]
    assert isinstance(leaf["stagecoach/plan_warning"], dg.MarkdownMetadataValue)
    warning = str(leaf["stagecoach/plan_warning"].value)
    assert warning.startswith("- `sales` has 2,000 rows; the plan was made for 20\n")
    assert "`stagecoach compile`" in warning
    assert "`plans/counted/`" in warning
    assert "x too low" in str(leaf["stagecoach/estimate_warning"].value)
    # The table's own asset tells it for all stages: it is the one that people look at.
    assert str(grown["counted"]["stagecoach/plan_warning"].value) == warning
    sizes = [len(str(value.value)) for told in grown.values() for value in told.values()]
    assert max(sizes) < 5_000


def test_the_head_tells_of_the_tables_of_all_stages() -> None:
    graph = tpch_graph("q12", FORCED)
    (leaf,) = (s for s in graph.stages if s.tables == ("orders",))
    rows = planned_rows(leaf)["orders"]
    lineitem = next(s for s in graph.stages if s.tables == ("lineitem",))

    def warning(stage: Stage, **found: int) -> str | None:
        tables: dict[str, TableSnapshot] = {}
        for name, rows in found.items():
            file = DataFile(
                uri=name, num_bytes=1, version="", num_rows=rows, row_groups=(), footer_checksum=""
            )
            tables[name] = TableSnapshot(table=name, columns=(), files=(file,))
        return plan_warning(graph, stage, Snapshot(tables))

    same = {"orders": rows, "lineitem": planned_rows(lineitem)["lineitem"]}
    assert warning(graph.head, **same) is None
    grown = {**same, "orders": rows * 100}
    assert warning(lineitem, **grown) is None
    text = warning(leaf, **grown)
    assert text is not None
    assert text.startswith(f"- `orders` has {rows * 100:,} rows; the plan was made for {rows:,}")
    assert warning(graph.head, **grown) == text
    # A run of part of a query has no snapshot of other tables.
    assert warning(graph.head, orders=rows * 100) == text
    assert warning(graph.head) is None


SLOTS = {"slots": 8, "min_task_bytes": 100, "target_task_bytes": 5_000}
LARGE = SLOTS | {"inputs": {"bytes": 40_000}}


@pytest.mark.parametrize(
    ("metrics", "files", "line"),
    [
        (LARGE, 8, "8 for 40,000 bytes of input: 8 slots, at most 5,000 bytes a task"),
        (
            LARGE | {"adaptive": [{"kind": "rounds", "text": "x"}]},
            8,
            "8 for 40,000 bytes of input: 8 slots",
        ),
        (SLOTS, 1, "1 for 0 bytes of input, less than `min_task_bytes` (100)"),
        (
            LARGE | {"incremental": {}},
            3,
            "3, one for each group of files; 40,000 bytes of input were read",
        ),
        ({"inputs": {"bytes": 7}}, 2, "2, as Spark divided 7 bytes of input"),
    ],
    ids=["slots", "rounds", "small", "incremental", "spark"],
)
def test_tasks_are_told_with_what_decided_their_number(
    tmp_path: Path, metrics: Mapping[str, object], files: int, line: str
) -> None:
    graph = tpch_graph("q12", FORCED)
    store, schema = open_store(tmp_path), pa.schema([("c0", pa.int64())])
    file = write_map_file(store, "ab" * 32, [pa.record_batch({"c0": [1]})], schema)
    manifest = commit_files(store, "ab" * 32, [file], schema)
    manifest = replace(manifest, files=manifest.files * files, metrics=metrics)
    result = StageResult(stage_id=0, fingerprint=manifest.fingerprint, engine="duckdb")
    told = decisions(graph, graph.stages[0], result, manifest)
    assert f"- **tasks** {line}" in told.splitlines()


def test_skew_is_the_largest_partition_by_the_median() -> None:
    assert skew((10, 20, 90)) == pytest.approx(4.5)
    assert skew((0, 0, 7)) == pytest.approx(1.0)
    assert skew((0, 0)) is None
    assert skew(()) is None


def test_what_is_not_known_is_left_out() -> None:
    told = StageMetadata(deferred="no", estimate_factor=0.0001)
    assert set(told.to_dagster()) == {"stagecoach/deferred", "stagecoach/estimate_factor"}
    assert told.to_dagster()["stagecoach/estimate_factor"].value == pytest.approx(0.0001)
