"""Row groups of a scan from S3 whose bounds rule out its predicates are not read; rows are Spark's."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.file_pruning import row_group_test
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.infra.reading import parquet, remote_files
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput, ScanInput
from stagecoach.infra.reading.row_bounds import ALWAYS, NEVER, Bounds, BoundsTest, all_of, any_of
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import DATE
from tests.fault_proxy import FaultProxy
from tests.infra.formats.test_prune_files import CASES, SCHEMA, rows_of_file
from tests.infra.spark_runs import make_views, run_on_duckdb, run_tasks_here
from tests.infra.stage_runs import run_here
from tests.s3_server import S3Server, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

__all__ = ["s3_server"]

ZONE = "America/New_York"

# ---------------------------------------------------------------- which row groups


def write(folder: Path, table: pa.Table, group_rows: int) -> FileCatalog:
    (folder / "t").mkdir()
    pq.write_table(table, folder / "t" / "a.parquet", row_group_size=group_rows)
    (folder / "catalog.yaml").write_text("tables:\n  t:\n    location: t\n")
    return load_catalog(folder / "catalog.yaml")


def groups_to_read(
    graph: StageGraph, catalog: FileCatalog, parameters: dict[str, Literal] | None = None
) -> list[int]:
    """The row groups of the only file that the first stage would read."""
    stage = graph.stages[0]
    if not stage.leaves:  # the planner has found that no row passes
        return []
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    table = take_snapshot(catalog, ["t"]).table("t")
    test = row_group_test(stage.fragment, leaf, table, parameters or {}, graph.time_zone)
    pairs = zip(leaf.outputs, leaf.source, strict=True)
    columns = tuple(LeafColumn(f"c{c.id}", source, c.dtype) for c, source in pairs)
    (file,) = table.files
    rows = DataFile(file.uri, file.num_rows)
    # As plain data, as tasks travel.
    if test is not None:
        test = BoundsTest.from_list(json.loads(json.dumps(test.to_list())))
    wanted = parquet.groups_to_read(
        pq.read_metadata(file.uri), rows, ParquetInput(columns, (rows,), test=test)
    )
    return [number for number, is_read in enumerate(wanted) if is_read]


def test_row_groups_are_judged_as_files_are(tmp_path: Path) -> None:
    """The rows of six files as six row groups of one."""
    rows = [row for number in range(6) for row in rows_of_file(number)]
    catalog = write(tmp_path, pa.Table.from_pylist(rows, schema=SCHEMA), 10)
    found = {}
    for condition in CASES:
        graph = plan_query(f"SELECT id FROM t WHERE {condition}", catalog, PlannerOptions())
        found[condition] = "".join(map(str, groups_to_read(graph, catalog)))
    assert found == CASES


def test_parameters_and_partitions(tmp_path: Path) -> None:
    rows = [row for number in range(6) for row in rows_of_file(number)]
    catalog = write(tmp_path, pa.Table.from_pylist(rows, schema=SCHEMA), 10)
    specs = (ParameterSpec("low", DATE), ParameterSpec("high", DATE))
    sql = "SELECT id FROM t WHERE day BETWEEN :low AND :high"
    graph = plan_query(sql, catalog, PlannerOptions(), parameters=specs)
    values = {"low": Literal(DATE, "2024-01-02"), "high": Literal(DATE, "2024-01-03")}
    assert groups_to_read(graph, catalog, values) == [1, 2]
    assert groups_to_read(graph, catalog, {**values, "low": Literal(DATE, None)}) == []
    # A column of the file that a partition folder has, too, is the folder's.
    (file,) = take_snapshot(catalog, ["t"]).table("t").files
    metadata = pq.read_metadata(file.uri)
    test = BoundsTest("gt", 0, Decimal(55))
    column = plan_query("SELECT id FROM t", catalog, PlannerOptions()).stages[0].schema[0]
    leaf = ParquetInput((LeafColumn("c0", "ID", column.dtype),), (), test=test)
    whole = DataFile(file.uri, 60)
    assert parquet.groups_to_read(metadata, whole, leaf) == [False] * 4 + [True] * 2
    constant = dataclasses.replace(whole, constants=(("id", "99"),))
    assert parquet.groups_to_read(metadata, constant, leaf) == [True] * 6
    other = ParquetInput((LeafColumn("c0", "id", DATE),), (), test=test)
    assert parquet.groups_to_read(metadata, whole, other) == [True] * 6


def test_files_of_the_old_calendar_are_read_whole(tmp_path: Path) -> None:
    rows = [row for number in range(6) for row in rows_of_file(number)]
    catalog = write(tmp_path, pa.Table.from_pylist(rows, schema=SCHEMA), 10)
    graph = plan_query("SELECT id FROM t WHERE id = 5", catalog, PlannerOptions())
    stage = graph.stages[0]
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    table = take_snapshot(catalog, ["t"]).table("t")
    assert row_group_test(stage.fragment, leaf, table, {}, "UTC") is not None
    old = dataclasses.replace(table, native_reason="dates of the old calendar")
    assert row_group_test(stage.fragment, leaf, old, {}, "UTC") is None


TESTS = st.recursive(
    st.builds(
        BoundsTest,
        st.sampled_from(["null", "value", "lt", "le", "gt", "ge", "starts"]),
        st.integers(0, 2),
        st.sampled_from(["", "b", "ß", Decimal("-3"), Decimal("7.25")]),
    )
    | st.sampled_from([ALWAYS, NEVER]),
    lambda inner: (
        st.builds(all_of, st.lists(inner, max_size=3))
        | st.builds(any_of, st.lists(inner, max_size=3))
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(TESTS, st.lists(st.sampled_from([None, "a", "c", Decimal(0), Decimal(9)]), min_size=4, max_size=4), st.booleans())  # fmt: skip
def test_a_test_travels_and_knows_its_columns(
    test: BoundsTest, ends: list[Any], has_null: bool
) -> None:
    again = BoundsTest.from_list(json.loads(json.dumps(test.to_list())))
    assert again == test
    known = {i: Bounds(has_null, True, low=ends[i], high=ends[i + 1]) for i in range(3)}
    used = {i: bounds for i, bounds in known.items() if i in test.columns}
    assert test.may_hold(used) == test.may_hold(known)
    moved = test.renumbered({i: i + 10 for i in range(3)})
    assert moved.may_hold({i + 10: b for i, b in known.items()}) == test.may_hold(known)
    assert test.renumbered({}).may_hold(known) or not test.may_hold({})


# ---------------------------------------------------------------- Spark's rows


NAN, INF = float("nan"), float("inf")


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


# Of each type: what a row may have, in ascending order, and as SQL writes it.
VALUES: dict[str, tuple[pa.DataType, list[tuple[Any, str]]]] = {
    "i": (pa.int32(), [(v, str(v)) for v in (-2147483647, -5, -1, 0, 1, 7, 2147483647)]),
    "l": (pa.int64(), [(v, f"{v}L") for v in (-(2**62), -1, 0, 3, 2**53 + 1, 2**62)]),
    "x": (pa.float64(), [(v, t) for v, t in ((-INF, "DOUBLE('-Infinity')"), (-1.5, "-1.5D"), (-0.0, "-0.0D"), (0.0, "0.0D"), (2.5, "2.5D"), (INF, "DOUBLE('Infinity')"), (NAN, "DOUBLE('NaN')"))]),
    "f": (pa.float32(), [(v, f"FLOAT('{v}')") for v in (-2.0, -0.0, 0.5, 8.0, NAN)]),
    "d": (pa.decimal128(9, 2), [(Decimal(v), v) for v in ("-999.99", "-0.01", "0.00", "0.01", "12.50", "9999999.99")]),
    "w": (pa.decimal128(38, 4), [(Decimal(v), v) for v in ("-1234567890123456789012345678901234.5678", "0.0000", "0.0001", "9999999999999999.9999", "1234567890123456789012345678901234.5678")]),
    "day": (pa.date32(), [(dt.date.fromisoformat(v), f"DATE'{v}'") for v in ("0001-01-01", "1582-10-15", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31")]),
    "at": (pa.timestamp("us", "UTC"), [(moment(v), f"TIMESTAMP'{v} UTC'") for v in ("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-03-10 06:59:59", "2024-03-10 07:30:00", "2024-11-03 05:30:00", "2024-11-03 06:30:00")]),
    "ntz": (pa.timestamp("us"), [(dt.datetime.fromisoformat(v), f"TIMESTAMP_NTZ'{v}'") for v in ("1969-12-31 23:59:59.999999", "2024-03-10 02:30:00", "2024-11-03 01:30:00")]),
    "s": (pa.string(), [(v, f"'{v}'") for v in ("", "A", "a", "ab", "b" * 70, "z", "ß", "\uffff", "😀")]),
    "flag": (pa.bool_(), [(False, "false"), (True, "true")]),
}  # fmt: skip
# Without a zone of their own they are read in the session's, where clocks change.
LOCAL_TIMES = ("TIMESTAMP'2024-03-10 02:30:00'", "TIMESTAMP'2024-11-03 01:30:00'", "TIMESTAMP'2024-03-10 03:00:00'", "TIMESTAMP'1883-11-18 12:00:00'")  # fmt: skip
CAST_VALUES: dict[str, tuple[str, ...]] = {
    "i": ("CAST('-5' AS SMALLINT)", "7S", "CAST(7.0 AS INT)", "TRY_CAST('x' AS INT)"),
    "d": ("-0.01BD", "CAST('12.5' AS DECIMAL(4,2))", "CAST(12.50 AS DECIMAL(9,1))", "TRY_CAST('1e3' AS DECIMAL(4,2))"),
    "w": ("-1234567890123456789012345678901234.5678BD", "CAST('0.0001' AS DECIMAL(38,4))"),
    "day": ("TRY_CAST('2024-02-29' AS DATE)", "TRY_CAST('2023-02-29' AS DATE)"),
    "at": (*LOCAL_TIMES, "DATE'2024-03-10'", "DATE'1970-01-01'"),
    "ntz": ("CAST(DATE'2024-03-10' AS TIMESTAMP_NTZ)", "DATE'2024-11-03'"),
}  # fmt: skip
GROUPS, GROUP_ROWS = 24, 6


def special_rows(seed: int) -> pa.Table:
    """Row groups of neighbouring values: some with NULLs, some with nothing else."""
    rng = random.Random(seed)
    columns: dict[str, pa.Array] = {}
    for name, (kind, values) in VALUES.items():
        filled: list[Any] = []
        for _ in range(GROUPS):
            start = rng.randrange(len(values))
            near = [v for v, _ in values[start : start + rng.randint(1, 2)]]
            nulls = rng.choice([0.0, 0.0, 0.3, 1.0])
            filled += [
                None if rng.random() < nulls else rng.choice(near) for _ in range(GROUP_ROWS)
            ]
        columns[name] = pa.array(filled, kind)
    columns["g"] = pa.array([i // GROUP_ROWS for i in range(GROUPS * GROUP_ROWS)], pa.int32())
    return pa.table(columns)


@st.composite
def predicates(draw: st.DrawFn) -> str:
    """A condition over one or several columns."""
    name = draw(st.sampled_from(list(VALUES)))
    values = [text for _, text in VALUES[name][1]]
    values += CAST_VALUES.get(name, ())
    one, two = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"]))
    forms = [
        f"{name} {operator} {one}",
        f"{one} {operator} {name}",
        f"{name} IN ({one}, {two})",
        f"{name} BETWEEN {one} AND {two}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
    ]
    if name == "s":
        forms += [f"{name} LIKE concat({one}, '%')", f"startswith({name}, {one})"]
    if name in ("x", "f"):
        forms += [f"isnan({name})", f"-{name} {operator} {one}"]
    if name == "i":
        forms += [f"CAST({name} AS DECIMAL(20,2)) {operator} 0.5", f"l {operator} {name}"]
    text = draw(st.sampled_from(forms))
    match draw(st.integers(0, 5)):
        case 0:
            return f"NOT ({text})"
        case 1:
            return f"({text}) OR ({draw(predicates())})"
        case 2:
            return f"({text}) AND ({draw(predicates())})"
    return text


@pytest.mark.slow
@pytest.mark.spark
@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 10_000), conditions=st.lists(predicates(), min_size=60, max_size=60))
def test_no_row_group_with_a_row_for_spark_is_left_out(
    seed: int,
    conditions: Sequence[str],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("special")
    catalog = write(folder, special_rows(seed), GROUP_ROWS)
    make_views(spark, folder, "t")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    try:
        counts = ", ".join(f"count_if({text}) AS n{i}" for i, text in enumerate(conditions))
        rows = spark.sql(f"SELECT g, {counts} FROM t GROUP BY g").toArrow().to_pylist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    left_out = 0
    for number, condition in enumerate(conditions):
        options = PlannerOptions(time_zone=ZONE)
        graph = plan_query(f"SELECT g FROM t WHERE {condition}", catalog, options)
        found = set(groups_to_read(graph, catalog))
        needed = {row["g"] for row in rows if row[f"n{number}"]}
        assert needed <= found, condition
        left_out += GROUPS - len(found)
    assert left_out > 0


# ---------------------------------------------------------------- from S3


def s3_table(server: S3Server, tmp_path: Path, table: pa.Table, group_rows: int) -> None:
    """A table on S3 with its catalog, and a copy in a folder for Spark's own queries."""
    root = server.new_root()
    path = tmp_path / "t" / "a.parquet"
    path.parent.mkdir()
    # Of a dictionary with -0.0 and without 0.0, Spark thinks that no row is 0.0.
    pq.write_table(table, path, row_group_size=group_rows, use_dictionary=False)
    open_store(root, server.options).write_bytes("t/a.parquet", path.read_bytes())
    (tmp_path / "s3.yaml").write_text(f"tables: {{t: {{location: '{root}/t'}}}}")


@pytest.fixture
def groups_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The row groups that may be fetched while a test runs."""
    fetched: list[int] = []
    real = remote_files.windows_of

    def noted(metadata: Any, groups: Sequence[int], *rest: Any) -> Any:
        fetched.extend(groups)
        return real(metadata, groups, *rest)

    monkeypatch.setattr(remote_files, "windows_of", noted)
    yield fetched


QUERIES = {
    "SELECT g, i, s FROM t WHERE g < 9 AND x > 2.5": 4,  # NaN is larger, and in no bounds
    "SELECT g, x FROM t WHERE g < 9 AND x = 0": 4,  # the others are nothing but NULL
    "SELECT g, count(*) AS n FROM t WHERE g BETWEEN 3 AND 5 GROUP BY g": 3,
    "SELECT g, s FROM t WHERE g IN (1, 20) AND s IS NULL": 1,  # the other has no NULL
    "SELECT count(*) AS n, CAST(sum(d) AS STRING) AS d FROM t WHERE g > 100 OR g = 7": 1,
    "SELECT count(*) AS n FROM t WHERE g > 100": 0,
    "SELECT a.g, b.i FROM t AS a JOIN t AS b ON a.g = b.g WHERE a.g = 4 AND b.g < 6": 2,
    "SELECT g, CAST(at AS STRING) AS at, CAST(day AS STRING) AS day FROM t WHERE g < 2 AND i < l": 2,
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.s3
def test_rows_from_s3_are_sparks(
    s3_server: S3Server,
    spark_settings: EngineSettings,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups_read: list[int],
) -> None:
    run_tasks_here(monkeypatch)
    table = special_rows(5)
    s3_table(s3_server, tmp_path, table, GROUP_ROWS)
    catalog = load_catalog(tmp_path / "s3.yaml", s3_server.options)
    engine_settings = dataclasses.replace(
        spark_settings,
        storage_root=str(tmp_path / "store"),
        storage_options=s3_server.options,
        reader_memory_bytes=1000,
    )
    make_views(spark, tmp_path, "t")
    found = {}
    for sql in QUERIES:
        graph = plan_query(sql, catalog, PlannerOptions(), name="q")
        groups_read.clear()
        run_on_duckdb(sql, graph, catalog, engine_settings, spark)
        found[sql] = len(groups_read)
    assert found == QUERIES
    for name, (_, values) in VALUES.items():
        shown = name if name in ("i", "l", "x", "f", "flag") else f"CAST({name} AS STRING) AS shown"
        least = values[len(values) // 2][1].replace(" UTC", "")
        sql = f"SELECT g, {shown} FROM t WHERE {name} >= {least}"
        graph = plan_query(sql, catalog, PlannerOptions(), name="q")
        groups_read.clear()
        run_on_duckdb(sql, graph, catalog, engine_settings, spark)
        values_in = table.group_by("g").aggregate([(name, "count")]).column(1).to_pylist()
        filled = sum(count > 0 for count in values_in)
        unbounded = name in ("x", "f", "flag")
        assert len(groups_read) == filled if unbounded else 0 < len(groups_read) < filled, sql


@pytest.mark.s3
def test_what_is_left_out_is_not_asked_for(
    s3_server: S3Server, spark_settings: EngineSettings, tmp_path: Path, groups_read: list[int]
) -> None:
    """Of 40 row groups of a megabyte each; and an input of a task knows what its rows must pass."""
    rng = random.Random(1)
    rows = 40 * 1000
    table = pa.table({"k": range(rows), "s": [rng.randbytes(500).hex() for _ in range(rows)]})
    s3_table(s3_server, tmp_path, table, 1000)
    proxy = FaultProxy(s3_server.endpoint_url)
    with proxy.running():
        options = dataclasses.replace(s3_server.options, endpoint_url=proxy.url)
        catalog = load_catalog(tmp_path / "s3.yaml", options)
        engine_settings = dataclasses.replace(
            spark_settings, storage_options=options, parallelism=1
        )
        found = {}
        for condition in ("k = 5500", "k < 0", "k = 5500 OR k = 30500", "k >= 0"):
            sql = f"SELECT max(concat(s, 'x')) AS s FROM t WHERE {condition}"
            graph = plan_query(sql, catalog, PlannerOptions(), name="q")
            catalog.table("t")  # its footer is known, as that of a planned query is
            proxy.requests.clear()
            groups_read.clear()
            runs = run_here(
                graph, catalog, engine_settings, open_store(tmp_path / condition, options)
            )
            for spec in runs[0].specs:
                (leaf,) = spec.inputs
                assert isinstance(leaf, ScanInput)
                assert (leaf.test is not None) == bool(leaf.files)
            gets = [p for m, p in proxy.requests if m == "GET" and "a.parquet" in p]
            found[condition] = (list(groups_read), len(gets))
    assert found["k = 5500"][0] == [5]
    assert found["k < 0"] == ([], 0)
    assert found["k = 5500 OR k = 30500"][0] == [5, 30]
    assert found["k >= 0"][0] == list(range(40))
    # Two of them are far from each other, 40 neighbours make up three windows: five requests.
    few, both, every = (found[c][1] for c in ("k = 5500", "k = 5500 OR k = 30500", "k >= 0"))
    assert (both - few, every - few) == (1, 4)


def test_infinite_bounds_rule_nothing_out() -> None:
    assert math.isinf(INF)
    test = all_of([BoundsTest("ge", 0, Decimal(3)), BoundsTest("value", 0)])
    assert test.may_hold({}) and test.may_hold({0: Bounds()})
    assert not test.may_hold({0: Bounds(high=Decimal(2))})
    assert test.may_hold({0: Bounds(high="a text")})
    assert not test.may_hold({0: Bounds(has_value=False)})
