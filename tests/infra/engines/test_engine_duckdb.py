"""DuckDB as an engine: settings, plans, inputs, errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.duckdb import engine
from stagecoach.infra.engines.duckdb.engine import DuckDbEngine, parquet_select
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.errors import InputLostError, QueryError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import (
    ArrowInput,
    LeafColumn,
    ParquetInput,
    PlainInput,
)
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.planner.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Field,
    array_of,
    arrow_schema,
    decimal,
    map_of,
    struct_of,
)

ROWS = 50_000


@pytest.fixture
def settings(tmp_path: Path) -> Resources:
    return Resources(
        time_zone="America/New_York",
        memory_bytes=256 << 20,
        spill_dir=str(tmp_path / "spill"),
        directories=(str(tmp_path / "data"),),
    )


@pytest.fixture
def big(tmp_path: Path) -> str:
    path = tmp_path / "data" / "big.parquet"
    path.parent.mkdir()
    k = np.arange(ROWS)
    pq.write_table(pa.table({"k": k, "v": k * 0.5}), path, row_group_size=5_000)
    return str(path)


def columns(**kinds: DataType) -> tuple[LeafColumn, ...]:
    return tuple(LeafColumn(f"c{i}", n, t) for i, (n, t) in enumerate(kinds.items()))


def schema_of(*kinds: DataType) -> pa.Schema:
    return arrow_schema(tuple(Field(f"c{i}", t) for i, t in enumerate(kinds)))


def whole(uri: str, num_rows: int) -> DataFile:
    return DataFile(uri, num_rows)


def big_input(uri: str, *parts: tuple[int, int]) -> ParquetInput:
    files = tuple(DataFile(uri, ROWS, rows=(a, b)) for a, b in parts or ((0, ROWS),))
    return ParquetInput(columns(k=BIGINT, v=DOUBLE), files)


def arrow_input(table: pa.Table, num_bytes: int = 0) -> ArrowInput:
    kinds = {"int64": BIGINT, "string": STRING}
    named = tuple(LeafColumn(f.name, "", kinds[str(f.type)]) for f in table.schema)
    return ArrowInput(named, lambda: iter(table.to_batches()), num_bytes)


def run(sql: str, inputs: list[PlainInput], schema: pa.Schema, settings: Resources) -> pa.Table:
    with DuckDbEngine().run(Fragment.of(sql, inputs, schema), settings) as batches:
        return pa.Table.from_batches(batches, schema=schema)


def plan(sql: str, inputs: dict[str, pa.Table | ParquetInput], settings: Resources) -> str:
    cursor = engine._database(settings, os.getpid()).cursor()
    for name, leaf in inputs.items():
        if isinstance(leaf, pa.Table):
            cursor.register(name, leaf)
        else:
            cursor.execute(f"CREATE TEMP VIEW {name} AS {parquet_select(cursor, leaf)}")
    rows = cursor.execute(f"EXPLAIN ANALYZE {sql}").fetchall()
    cursor.close()
    return str(rows[0][1])


def test_every_setting_holds_for_the_cursors_that_run_tasks(settings: Resources) -> None:
    cursor = engine._database(settings, os.getpid()).cursor()
    names = "TimeZone", "threads", "memory_limit", "default_null_order", "enable_external_access"
    found = {n: cursor.execute(f"SELECT current_setting('{n}')").fetchone()[0] for n in names}
    assert found == {
        "TimeZone": "America/New_York",
        "threads": 1,
        "memory_limit": "256.0 MiB",
        "default_null_order": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
        "enable_external_access": False,
    }
    assert (
        "join_order"
        in cursor.execute("SELECT current_setting('disabled_optimizers')").fetchone()[0]
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_parquet('/etc/hosts')",
        "SELECT * FROM read_csv('{data}/../secret.csv')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "ATTACH '/tmp/x.db'",
        "SET TimeZone = 'UTC'",
        "RESET lock_configuration",
        "INSTALL httpfs",
        "SELECT * FROM settings",  # a Python variable of this frame
    ],
)
def test_a_fragment_reaches_nothing_but_its_inputs(
    settings: Resources, tmp_path: Path, sql: str
) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with pytest.raises(QueryError):
        run(sql.format(data=tmp_path / "data"), [], schema_of(STRING), settings)


def test_the_zone_is_that_of_the_query(settings: Resources) -> None:
    sql = "SELECT hour(TIMESTAMPTZ '2024-01-01 12:00:00+00')::INTEGER AS c0"
    assert run(sql, [], schema_of(INT), settings)["c0"].to_pylist() == [7]


def test_joins_stay_as_written_and_filters_reach_the_file(settings: Resources, big: str) -> None:
    small = pa.table({"s": [5, 6, 7]})
    inputs: dict[str, pa.Table | ParquetInput] = {"in_0": big_input(big), "in_1": small}
    text = plan("SELECT * FROM in_0 JOIN in_1 ON c0 = s WHERE c1 < 1000", inputs, settings)
    scan_line = next(line for line in text.splitlines() if "READ_PARQUET" in line)
    assert scan_line.index("READ_PARQUET") < scan_line.index("PYTHON_ARROW_SCAN"), "right is built"
    assert "Dynamic Filters" in text, "the build side's keys reach the scan"
    assert "Row Groups Scanned: 1 / 10" in text
    text = plan("SELECT * FROM in_1 JOIN in_0 ON c0 = s", inputs, settings)
    scan_line = next(line for line in text.splitlines() if "PYTHON_ARROW_SCAN" in line)
    assert "READ_PARQUET" not in scan_line or scan_line.index(
        "PYTHON_ARROW_SCAN"
    ) < scan_line.index("READ_PARQUET"), (
        "the large side is built because it was written on the right"
    )


def test_filters_on_floats_do_not_reach_the_file(settings: Resources, big: str) -> None:
    # It would skip row groups by bounds that leave NaN out.
    text = plan("SELECT c0 FROM in_0 WHERE c1 < 1000", {"in_0": big_input(big)}, settings)
    assert "v < 1000" not in text
    assert "Row Groups Scanned: 10 / 10" in text
    text = plan("SELECT c0 FROM in_0 WHERE c0 < 1000", {"in_0": big_input(big)}, settings)
    assert "Row Groups Scanned: 1 / 10" in text, "those on integers do"


def test_a_part_of_a_file_skips_row_groups(settings: Resources, big: str) -> None:
    text = plan("SELECT sum(c0) FROM in_0", {"in_0": big_input(big, (5_000, 12_000))}, settings)
    assert "Row Groups Scanned: 2 / 10" in text


def test_parts_come_in_the_order_given(settings: Resources, big: str) -> None:
    leaf = big_input(big, (40_000, 41_000), (0, ROWS), (7, 9))
    rows = run("SELECT c0 FROM in_0", [leaf], schema_of(BIGINT), settings)["c0"].to_pylist()
    assert rows == [*range(40_000, 41_000), *range(ROWS), 7, 8]


def test_paths_are_names_and_not_patterns(settings: Resources, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "[a]*"
    folder.mkdir(parents=True)
    for name, value in (("it's?.parquet", 1), ("it's1.parquet", 2)):
        pq.write_table(pa.table({"k": [value]}), folder / name)
    settings = Resources(**{**vars(settings), "directories": (str(folder),)})
    leaf = ParquetInput(columns(k=BIGINT), (whole(str(folder / "it's?.parquet"), 1),))
    assert run("SELECT c0 FROM in_0", [leaf], schema_of(BIGINT), settings)["c0"].to_pylist() == [1]


def test_int96_is_an_instant(settings: Resources, tmp_path: Path) -> None:
    path = tmp_path / "data" / "t.parquet"
    path.parent.mkdir()
    moment = datetime(2024, 7, 1, 12, tzinfo=UTC)
    pq.write_table(
        pa.table({"t": pa.array([moment], pa.timestamp("us"))}),
        path,
        use_deprecated_int96_timestamps=True,
    )
    leaf = ParquetInput(columns(t=TIMESTAMP), (whole(str(path), 1),))
    rows = run("SELECT c0 FROM in_0", [leaf], schema_of(TIMESTAMP), settings)
    assert rows["c0"].to_pylist() == [moment]


@pytest.mark.parametrize("num_bytes", [0, 1 << 30], ids=["in memory", "copied to a table"])
def test_the_build_side_may_be_named_twice(settings: Resources, num_bytes: int) -> None:
    left = pa.table({"c0": [1, 2, 3]})
    right = pa.table({"c1": [2, 3, 4]})
    sql = (
        "SELECT c0 FROM in_0 WHERE c0 IN (SELECT c1 FROM in_1) AND c0 < (SELECT max(c1) FROM in_1)"
    )
    found = run(
        sql, [arrow_input(left), arrow_input(right, num_bytes)], schema_of(BIGINT), settings
    )
    assert found["c0"].to_pylist() == [2, 3]


def test_the_first_leaf_may_be_named_twice(settings: Resources) -> None:
    sql = "SELECT a.c0 FROM in_0 a JOIN in_0 b ON a.c0 = b.c0 + 1"
    left = arrow_input(pa.table({"c0": [1, 2, 3]}))
    assert run(sql, [left], schema_of(BIGINT), settings)["c0"].to_pylist() == [2, 3]


def test_an_input_that_the_sql_does_not_name_is_not_read(settings: Resources) -> None:
    """Equal leaves of a fragment are one relation."""

    def unexpected() -> Iterator[pa.RecordBatch]:
        raise AssertionError("read")

    unnamed = ArrowInput((LeafColumn("c0", "", BIGINT),), unexpected, 8)
    named = arrow_input(pa.table({"c0": [1, 2]}))
    for inputs in ([unnamed, named], [named, unnamed]):
        name = f"in_{inputs.index(named)}"
        found = run(f"SELECT sum(c0) AS c0 FROM {name}", inputs, schema_of(BIGINT), settings)
        assert found.to_pydict() == {"c0": [3]}


def test_the_input_that_the_sql_names_first_is_streamed(
    settings: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind, streamed = engine._bind, []

    def bind_and_note(cursor: Any, name: str, *rest: Any, **options: Any) -> None:
        streamed.extend([name] if options["streamed"] else [])
        bind(cursor, name, *rest, **options)

    monkeypatch.setattr(engine, "_bind", bind_and_note)
    inputs: list[PlainInput] = [arrow_input(pa.table({"c0": [1, 2]})) for _ in range(3)]
    sql = "SELECT b.c0 FROM in_2 AS a JOIN in_1 AS b ON a.c0 = b.c0"
    assert run(sql, inputs, schema_of(BIGINT), settings).num_rows == 2
    assert streamed == ["in_2"]


def test_large_input_streams_and_a_sort_spills(tmp_path: Path) -> None:
    settings = Resources(time_zone="UTC", memory_bytes=64 << 20, spill_dir=str(tmp_path / "spill"))
    block = pa.record_batch({"c0": np.random.default_rng(1).integers(0, 1 << 40, 100_000)})
    batches = 120  # 96 MB
    leaf = ArrowInput(columns(k=BIGINT), lambda: iter([block] * batches))
    found = 0
    last = -1
    sql = "SELECT c0 FROM in_0 ORDER BY c0"
    with DuckDbEngine().run(Fragment.of(sql, [leaf], schema_of(BIGINT)), settings) as result:
        for batch in result:
            values = np.frombuffer(batch.column(0).buffers()[1], np.int64)[: batch.num_rows]
            assert values[0] >= last
            assert (np.diff(values) >= 0).all()
            last, found = int(values[-1]), found + batch.num_rows
    assert found == batches * 100_000


def test_an_error_in_the_middle_of_the_stream_is_a_query_error(
    settings: Resources, big: str
) -> None:
    sql = f"SELECT CASE WHEN c0 = {ROWS - 1} THEN error('late') ELSE c0 END::BIGINT AS c0 FROM in_0"
    with (
        pytest.raises(QueryError, match="late"),
        DuckDbEngine(batch_rows=2048).run(
            Fragment.of(sql, [big_input(big)], schema_of(BIGINT)), settings
        ) as rows,
    ):
        for _ in rows:
            pass


def test_the_error_of_an_input_keeps_its_class(settings: Resources) -> None:
    def lost() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"c0": [1]})
        raise InputLostError("x.parquet", "gone")

    for name in ("in_0", "in_1"):
        inputs: list[PlainInput] = [ArrowInput(columns(k=BIGINT), lost)]
        if name == "in_1":
            inputs.insert(0, arrow_input(pa.table({"c0": [1]})))
        with pytest.raises(InputLostError, match="gone"):
            run(f"SELECT c0 FROM {name}", inputs, schema_of(BIGINT), settings)


def test_a_changed_file_is_not_read(settings: Resources, big: str) -> None:
    size = os.stat(big).st_size
    leaf = ParquetInput(columns(k=BIGINT), (DataFile(big, ROWS, num_bytes=size, version="12345"),))
    with pytest.raises(InputLostError, match="changed"):
        run("SELECT c0 FROM in_0", [leaf], schema_of(BIGINT), settings)


def test_types_leave_as_pinned(settings: Resources) -> None:
    values: list[tuple[DataType, str, object]] = [
        (TINYINT, "5", 5),
        (SMALLINT, "CAST(5 AS HUGEINT)", 5),
        (BIGINT, "sum(7)", 7),
        (FLOAT, "1.5", 1.5),
        (BOOLEAN, "true", True),
        (STRING, "'ä'", "ä"),
        (BINARY, "'ab'::BLOB", b"ab"),
        (decimal(38, 6), "CAST(1.5 AS DECIMAL(10,2))", Decimal("1.500000")),
        (DATE, "DATE '2024-02-29'", datetime(2024, 2, 29).date()),
        (TIMESTAMP, "TIMESTAMPTZ '2024-01-01 00:00:00+00'", datetime(2024, 1, 1, tzinfo=UTC)),
        (TIMESTAMP_NTZ, "TIMESTAMP '2024-01-01 00:00:00'", datetime(2024, 1, 1)),
        (array_of(INT), "[1, NULL]", [1, None]),
        (map_of(STRING, INT), "MAP {'a': 1}", [("a", 1)]),
        (
            struct_of((Field("x", INT), Field("y", STRING))),
            "{'x': 1, 'y': 'b'}",
            {"x": 1, "y": "b"},
        ),
    ]
    items = ", ".join(f"{sql} AS c{i}" for i, (_, sql, _) in enumerate(values))
    schema = schema_of(*(kind for kind, _, _ in values))
    found = run(f"SELECT {items}", [], schema, settings)
    assert found.schema == schema
    assert [c[0].as_py() for c in found.columns] == [value for _, _, value in values]


def test_a_value_that_the_pinned_type_cannot_hold_is_an_error(settings: Resources) -> None:
    for sql, kind in (("SELECT 300", TINYINT), ("SELECT 1.25", decimal(3, 1)), ("SELECT 'x'", INT)):
        with pytest.raises(QueryError):
            run(sql, [], schema_of(kind), settings)


def test_pyarrow_reads_the_same_rows_as_duckdb(big: str) -> None:
    for part in ((0, ROWS), (4_999, 5_001), (12_345, 23_456), (ROWS - 1, ROWS)):
        leaf = big_input(big, part)
        rows = pa.Table.from_batches(read_parquet_batches(leaf))["c0"].to_pylist()
        assert rows == list(range(*part))


def test_workers_do_not_load_what_only_the_driver_needs() -> None:
    code = (
        "import sys, stagecoach.infra.worker.task\n"
        "found = [m for m in ('pyspark', 'dagster', 'pandas', 'yaml') if m in sys.modules]\n"
        "sys.exit(','.join(found) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("threads", [1, 3])
def test_a_task_has_as_many_threads_as_it_may(settings: Resources, threads: int) -> None:
    fragment = Fragment(
        "SELECT current_setting('threads')::BIGINT AS c0", {}, arrow_schema([Field("c0", BIGINT)])
    )
    with DuckDbEngine().run(fragment, replace(settings, threads=threads)) as batches:
        assert pa.Table.from_batches(batches)["c0"].to_pylist() == [threads]


def test_the_build_side_is_left_to_duckdb_only_where_asked(settings: Resources) -> None:
    fragment = Fragment(
        "SELECT current_setting('disabled_optimizers') AS c0",
        {},
        arrow_schema([Field("c0", STRING)]),
    )
    found = []
    for chooses in (False, True):
        with DuckDbEngine().run(fragment, replace(settings, chooses_build_side=chooses)) as batches:
            found.append(pa.Table.from_batches(batches)["c0"][0].as_py().split(","))
    assert set(found[0]) - set(found[1]) == {"build_side_probe_side"}
