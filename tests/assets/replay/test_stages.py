"""A replay names what differs: from the run, and between DuckDB and Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets.project.queries import Query, read_queries
from stagecoach.assets.replay.chosen_rows import ResultRows
from stagecoach.assets.replay.comparison import compare_rows
from stagecoach.assets.replay.stages import StageReplayer, stage_fields
from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import load_settings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.replay.recorded_run import RecordedRun, open_run
from stagecoach.infra.replay.stage_rows import StageRows
from stagecoach.planner import plan_query
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.types import BIGINT, DOUBLE, STRING, Field
from tests.infra.replay.recorded import record_run
from tests.stage_outputs import commit_files, write_map_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = "0f6a1c1e-9f6b-4f6e-8d62-1d5b8e2f7a10"
FORCED = PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0)
SQL = """-- checks:
--   - not_null: name
--   - unique: [sales]
--   - no_rows: {name: few, sql: SELECT name FROM totals WHERE sales < 11}
--   - row_count: {min: 1}
SELECT name, sum(amount) AS total, count(*) AS sales
FROM sales JOIN shops ON sales.shop = shops.shop
WHERE amount > 0.1
GROUP BY name
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    """A run over three files of sales, with several tasks a stage."""
    folder = tmp_path_factory.mktemp("recorded")
    catalog = _catalog(folder)
    settings = load_settings(
        overrides={
            "storage_root": str(folder / "storage"),
            "spill_dir": str(folder / "spill"),
            "parallelism": 3,
            "min_task_bytes": 0,
            "adaptive": False,
        }
    )
    graph = plan_query(SQL, catalog, FORCED, name="totals")
    store = settings.open_store()
    record_run(graph, catalog, settings, store, RUN)
    return open_run(store, settings, RUN)


def _catalog(folder: Path) -> FileCatalog:
    (folder / "sales").mkdir()
    for part in range(3):
        rows = [(shop, 10 * part + i) for i in range(4) for shop in range(4)]
        table = pa.table({"shop": [s for s, _ in rows], "amount": [a / 10 for _, a in rows]})
        pq.write_table(table, folder / "sales" / f"{part}.parquet")
    (folder / "shops").mkdir()
    shops = pa.table({"shop": [0, 1, 2, 3], "name": ["a", "b", "a", None]})
    pq.write_table(shops, folder / "shops" / "0.parquet")
    file = folder / "catalog.yaml"
    file.write_text("tables:\n  sales: {location: sales}\n  shops: {location: shops}\n")
    return load_catalog(file)


class AsSpark(StageRows):
    """Gives DuckDB's rows as Spark's, but for a stage that Spark computes otherwise."""

    wrong = -1

    def on_spark(self, stage: Stage, session: Callable[[], SparkSession]) -> pa.Table:
        rows = self.native(stage)
        return rows.slice(1) if stage.stage_id == self.wrong else rows


def no_session() -> Any:
    raise AssertionError("no Spark is needed here")


def test_a_run_is_as_it_was(recorded: RecordedRun) -> None:
    rows = StageRows(run=recorded)
    replays = list(StageReplayer(rows=rows).replay(recorded.graph.stages))
    assert len(replays) > 2
    for found in replays:
        assert found.compared_with_run
        assert not found.differences, found.stage.title
        assert found.spark.rows is None
    assert any("merged" in note for found in replays for note in found.notes)


def test_the_first_stage_in_which_engines_differ(recorded: RecordedRun) -> None:
    rows = AsSpark(run=recorded)
    object.__setattr__(rows, "wrong", 1)
    replays = list(StageReplayer(rows=rows, session=no_session).replay(recorded.graph.stages))
    assert [found.stage.stage_id for found in replays if found.engines_differ] == [1]
    (told,) = replays[1].differences
    assert (told.left, told.right) == ("Spark", "DuckDB")
    assert len(told.difference.pairs) == 1
    assert not replays[1].run_differs


def test_a_run_that_committed_other_rows(recorded: RecordedRun) -> None:
    head = recorded.graph.head
    rows = StageRows(run=recorded)
    right = rows.committed(head)
    assert right is not None
    wrong = right.set_column(2, "c2", pa.array([99] * right.num_rows, right.schema.field(2).type))
    store, fingerprint = recorded.store, "f" * 64
    file = write_map_file(store, fingerprint, wrong.to_batches(), wrong.schema)
    manifest = commit_files(store, fingerprint, [file], wrong.schema, query="totals")
    pointers = {**recorded.pointers}
    pointers[head.stage_id] = replace(
        pointers[head.stage_id],
        expected=fingerprint,
        fingerprint=fingerprint,
        manifest_hash=manifest.manifest_hash,
    )
    changed = replace(recorded, pointers=pointers)
    found = StageReplayer(rows=StageRows(run=changed)).stage(head)
    assert found.run_differs
    assert not found.engines_differ
    (told,) = found.differences
    assert (told.left, told.right) == ("the run", "DuckDB")
    assert told.difference.pairs == ((0, 0), (1, 1), (2, 2))
    assert [f.name for f in told.fields] == ["name", "total", "sales"]


def test_a_stage_that_did_not_finish_is_still_replayed(recorded: RecordedRun) -> None:
    head = recorded.graph.head
    pointers = {i: p for i, p in recorded.pointers.items() if i != head.stage_id}
    run = replace(recorded, pointers=pointers)
    found = StageReplayer(rows=StageRows(run=run)).stage(head)
    assert found.committed.problem == "it did not finish"
    assert found.native.rows is not None
    assert found.native.rows.num_rows == 3
    assert not found.compared_with_run


# ---------------------------------------------------------------- comparing


FIELDS = (Field("k", BIGINT), Field("x", DOUBLE), Field("t", STRING))


def _rows(*rows: tuple[int | None, float | None, str | None]) -> pa.Table:
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.float64()), ("c2", pa.string())])
    return pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema
    )


def test_rounding_order_and_nan_do_not_count(recorded: RecordedRun) -> None:
    left = _rows((1, 0.1 + 0.2, "a"), (1, 5.0, "a"), (2, float("nan"), None), (None, -0.0, ""))
    right = _rows((None, 0.0, ""), (1, 5.000000000001, "a"), (2, float("nan"), None), (1, 0.3, "a"))
    assert compare_rows(recorded, FIELDS, left, right, left="l", right="r") is None


@pytest.mark.parametrize(
    "other",
    [
        _rows((1, 0.3, "a"), (1, 0.3, "a")),
        _rows((1, 0.3, "a")),
        _rows((1, 0.3, "a"), (2, 0.31, "a")),
        _rows((1, 0.3, "a"), (2, None, "a")),
        _rows((1, 0.3, "a"), (2, 0.3, "b")),
    ],
)
def test_differences_count(other: pa.Table, recorded: RecordedRun) -> None:
    rows = _rows((1, 0.3, "a"), (2, 0.3, "a"))
    found = compare_rows(recorded, FIELDS, rows, other, left="l", right="r")
    assert found is not None
    assert len(found.difference.pairs) == 1
    assert found.difference.expected == 2


def test_many_differences_are_counted(recorded: RecordedRun) -> None:
    left = _rows(*((i, 1.0, "a") for i in range(3000)))
    right = _rows(*((i, 2.0, "a") for i in range(3000)))
    found = compare_rows(recorded, FIELDS, left, right, left="l", right="r")
    assert found is not None
    assert len(found.difference.pairs) == 3000


# ---------------------------------------------------------------- choosing rows


@pytest.fixture
def result(recorded: RecordedRun) -> ResultRows:
    rows = StageRows(run=recorded).committed(recorded.graph.head)
    assert rows is not None
    fields = stage_fields(recorded, recorded.graph.head)
    return ResultRows(run=recorded, fields=fields, rows=rows)


@pytest.fixture
def query(tmp_path: Path) -> Query:
    (tmp_path / "totals.sql").write_text(SQL)
    queries, _, problems = read_queries([tmp_path / "totals.sql"])
    assert not problems
    return queries[0]


def test_rows_by_a_predicate(result: ResultRows) -> None:
    assert result.where("name = 'b' -- the second").column("c0").to_pylist() == ["b"]
    assert result.where("total IS NULL").num_rows == 0
    with pytest.raises(AnalysisError, match="column 'nam' not found") as caught:
        result.where("nam = 'b'")
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_rows_that_fail_a_check(result: ResultRows, query: Query) -> None:
    assert result.failing(query, "not_null_name").column("c0").to_pylist() == [None]
    # What fails a check of uniqueness are keys; all rows that have one are shown.
    assert set(result.failing(query, "unique_sales").column("c0").to_pylist()) == {"b", None}
    assert set(result.failing(query, "few").column("c0").to_pylist()) == {"b", None}
    with pytest.raises(ConfigError, match="no check 'fw'; its checks: 'not_null_name', "):
        result.failing(query, "fw")
    with pytest.raises(ConfigError, match="'row_count' is not about single rows"):
        result.failing(query, "row_count")
