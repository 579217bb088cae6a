"""Groups that only one task has rows of are dropped there: the rows of the query stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.planning.complete_groups import KeyRange, exclusive_ranges
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.distribution import complete_groups
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.infra.spark_runs import make_views
from tests.infra.stage_runs import StageRun, run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = (
    "SELECT k, sum(v) AS s, count(*) AS n FROM facts GROUP BY k HAVING sum(v) > 6 AND count(*) < 9"
)
LEAST, MOST = -(1 << 63), (1 << 63) - 1

keys = st.one_of(
    st.none(), st.integers(-4, 40), st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST])
)
rows = st.lists(st.tuples(keys, st.one_of(st.none(), st.integers(-3, 9))), max_size=60)
spans = st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1]))


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete_groups, "MIN_BYTES", 0)
    monkeypatch.setattr(complete_groups, "_MOST_KEPT", 2.0)


def write(folder: Path, files: Sequence[Sequence[tuple[int | None, int | None]]]) -> FileCatalog:
    """A table of files, each with row groups of five rows."""
    (folder / "facts").mkdir(parents=True)
    for number, content in enumerate(files):
        schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
        columns = {"k": [k for k, _ in content], "v": [v for _, v in content]}
        path = folder / "facts" / f"{number:03}.parquet"
        pq.write_table(pa.table(columns, schema=schema), path, row_group_size=5)
    (folder / "catalog.yaml").write_text("tables: {facts: {location: facts}}\n")
    return load_catalog(folder / "catalog.yaml")


def run(
    catalog: FileCatalog, folder: Path, tasks: int, **changes: Any
) -> tuple[list[tuple[Any, ...]], Sequence[StageRun]]:
    """The rows of the query, and its stages."""
    options = PlannerOptions(force_distribution=True, num_partitions=3)
    engine = EngineSettings(
        storage_root=str(folder),
        parallelism=tasks,
        min_task_bytes=0,
        adaptive_coalesce=False,
        **changes,
    )
    store = open_store(str(folder))
    stages = run_here(plan_query(SQL, catalog, options, name="q"), catalog, engine, store)
    return rows_of(read_table(store, stages[-1].manifest)), stages


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    found = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted((tuple(row) for row in found), key=repr)


def expected(files: Sequence[Sequence[tuple[int | None, int | None]]]) -> list[tuple[Any, ...]]:
    groups: dict[int | None, list[int | None]] = {}
    for content in files:
        for key, value in content:
            groups.setdefault(key, []).append(value)
    sums = {
        key: (sum(v for v in values if v is not None), len(values))
        for key, values in groups.items()
        if any(v is not None for v in values)
    }
    return sorted(((k, s, n) for k, (s, n) in sums.items() if s > 6 and n < 9), key=repr)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=rows, is_sorted=st.booleans(), files=st.integers(1, 3), tasks=st.integers(1, 5))
def test_rows_are_those_of_all_groups(
    tmp_path_factory: pytest.TempPathFactory,
    content: list[tuple[int | None, int | None]],
    is_sorted: bool,
    files: int,
    tasks: int,
) -> None:
    if is_sorted:
        content = sorted(content, key=lambda row: (row[0] is None, row[0] or 0))
    size = -(-len(content) // files) or 1
    parts = [content[start : start + size] for start in range(0, size * files, size)]
    folder = tmp_path_factory.mktemp("groups")
    found, _ = run(write(folder, parts), folder / "store", tasks)
    assert found == expected(parts)


@given(found=st.lists(st.one_of(st.none(), spans), max_size=8))
def test_a_range_has_keys_of_no_other_task(found: list[KeyRange | None]) -> None:
    ranges = list(exclusive_ranges(found))
    assert len(ranges) == len(found)
    for task, span in enumerate(found):
        others = [s for other, s in enumerate(found) if other != task and s is not None]
        inside = [] if span is None else range(span[0], span[1] + 1)
        alone = {k for k in inside if not any(low <= k <= high for low, high in others)}
        ends = ranges[task]
        complete = set() if ends is None else {k for k in inside if ends[0] < k < ends[1]}
        assert complete <= alone
        if span is not None and all(high < span[0] or low > span[1] for low, high in others):
            assert complete == alone


@pytest.mark.spark
def test_sorted_tables_move_few_groups(spark: SparkSession, tmp_path: Path) -> None:
    parts = [[(k // 3, k % 7) for k in range(start, start + 400)] for start in (0, 400, 800)]
    catalog = write(tmp_path, parts)
    make_views(spark, tmp_path, "facts")
    answer = rows_of(spark.sql(SQL).toArrow())
    found, stages = run(catalog, tmp_path / "on", 4)
    assert found == answer == expected(parts)
    assert [d.text for d in stages[0].decisions if d.kind == "complete"] == [
        "4 of 4 tasks drop groups that no other task has rows of"
    ]
    # Of groups that are refused, only those at the borders of two tasks are moved.
    assert len(found) <= stages[0].manifest.num_rows <= len(found) + 2 * 3
    found, stages = run(catalog, tmp_path / "off", 4, adaptive_complete=False)
    assert found == answer
    assert stages[0].manifest.num_rows >= 400


def test_nothing_is_dropped_where_bounds_are_missing(tmp_path: Path) -> None:
    parts = [[(k, 1) for k in range(50)], [(None, 2)] * 10]
    found, stages = run(write(tmp_path, parts), tmp_path / "store", 3)
    assert found == expected(parts)
    assert not any(spec.variables for spec in stages[0].specs)
