"""Every function and cast that runs on DuckDB equals Spark, value for value and type for type.

Expressions run in batches over the edge table: each once on DuckDB as planned, once as plain Spark
SQL, once as our Spark text. Rows in which DuckDB raises are found one by one and left out of the
comparison; Spark runs such a stage again, so an error too many is slow but never wrong. An error
too few, or another value, fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from stagecoach.infra.engines.duckdb.engine import _database, parquet_select
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.infra.spark.float_digits import float_variables
from stagecoach.planner import plan_query
from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.errors import SqlError
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.functions.casts import cast_reason
from stagecoach.planner.functions.spell_numbers import APPROXIMATE
from stagecoach.planner.functions.tables import generators, spark_only
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Call, Cast
from stagecoach.planner.plan.physical import ProjectionExec, ScanExec
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.render.fragment import _Renderer, render_fragment
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType, decimal, parse_type, to_arrow
from tests.differential import cases_collections, cases_csv, cases_json
from tests.differential.edge_tables import EdgeTables
from tests.differential.function_cases import EITHER, INTERNAL, NATIVE, REFUSED
from tests.differential.inprocess import canonical, close, collect, settings_for, spark_types
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A minute beside two others on two cores: only a test that hangs takes longer than this.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

OPTIONS = PlannerOptions(single_task_bytes=1 << 60, exact_math=False)
# Entries with a table and a test of their own, `test_nested`.
# Proven over the nested table, by whole queries of the corpus, by test_relations and by
# test_spark_only.
ELSEWHERE = {
    *(
        n
        for cases in (cases_collections, cases_csv, cases_json)
        for n in (*cases.NATIVE, *cases.REFUSED)
    ),
    *(function.name for function in (*generators.FUNCTIONS, *spark_only.FUNCTIONS)),
    "grouping",
    "grouping_id",
}
# Families of `EITHER` that are made by rule.
GENERATED = {"arithmetic", "comparison", "conditional", "extremes", "casts"}
BATCH = 40
SPARK_ERRORS = (PySparkException, Py4JJavaError)


@dataclass
class Case:
    """One expression and what came of it."""

    expr: str
    stage: Stage | None = None
    refusal: str = ""
    bad_rows: list[int] = field(default_factory=list)
    native: pa.Array | None = None

    @property
    def is_native(self) -> bool:
        return self.stage is not None and self.stage.engine == "duckdb"

    @property
    def is_approximate(self) -> bool:
        """Whether a function of it may differ from Java's by rounding."""
        assert self.stage is not None
        nodes = (e for n in walk(self.stage.fragment) for e in n.expressions)
        return any(getattr(part, "function", "") in APPROXIMATE for e in nodes for part in walk(e))

    @property
    def dtype(self) -> DataType:
        assert self.stage is not None
        return self.stage.schema[1].dtype

    @property
    def guarded(self) -> str:
        """The expression in all rows but those in which DuckDB raised."""
        if not self.bad_rows:
            return self.expr
        return f"CASE WHEN id NOT IN ({', '.join(map(str, self.bad_rows))}) THEN {self.expr} END"


class Proof:
    """Compares expressions, and remembers which functions and casts have been proven."""

    def __init__(
        self,
        tables: EdgeTables,
        oracle: SparkSession,
        time_zone: str = "UTC",
        table: str = "e",
    ) -> None:
        self.tables = tables
        self.table = table
        self.spark = oracle
        self.options = replace(OPTIONS, time_zone=time_zone)
        self.functions: set[str] = set()
        self.casts: set[tuple[str, str]] = set()
        self._rows = pq.read_metadata(tables.files[table][0]).num_rows
        self._database = _database(settings_for(tables, time_zone), 0)
        self._cursor = self._database.cursor()
        for name, value in float_variables(oracle).items():
            self._cursor.execute(f"SET VARIABLE {name} = {value}")

    # ------------------------------------------------------------ planning and DuckDB

    def plan(self, expr: str, *, run: bool = True) -> Case:
        """The planned case, run on DuckDB if it is native and `run` says so."""
        case = Case(expr)
        graph = plan_query(
            f"SELECT id, {expr} AS v FROM {self.table}", self.tables.catalog, self.options
        )
        if graph.fallback_reason is not None:
            case.refusal = graph.fallback_reason
            return case
        assert len(graph.stages) == 1
        case.stage = graph.head
        case.refusal = "" if case.is_native else graph.head.engine_reason
        if case.is_native:
            if run:
                self._run_native(case)
            self._note(graph.head)
        return case

    def _note(self, stage: Stage) -> None:
        for node in walk(stage.fragment):
            for expr in node.expressions:
                for part in walk(expr):
                    if isinstance(part, Call):
                        self.functions.add(part.function)
                    if isinstance(part, Cast):
                        self.casts.add((part.arg.dtype.kind, part.dtype.kind))

    def _bind(self, stage: Stage) -> None:
        for position, leaf in enumerate(stage.leaves):
            assert isinstance(leaf, ScanExec)
            columns = tuple(
                LeafColumn(f"c{c.id}", s, c.dtype)
                for c, s in zip(leaf.outputs, leaf.source, strict=True)
            )
            file = DataFile(self.tables.files[self.table][0], self._rows)
            select = parquet_select(self._cursor, ParquetInput(columns, (file,)))
            self._cursor.execute(f"CREATE OR REPLACE TEMP VIEW in_{position} AS {select}")

    def _run_native(self, case: Case) -> None:
        assert case.stage is not None
        self._bind(case.stage)
        sql = render_fragment(case.stage, "duckdb", {})
        self._database.declare(sql)
        try:
            case.native = self._column(sql, case.dtype)
        except duckdb.Error as error:
            if isinstance(error, duckdb.BinderException | duckdb.ParserException | duckdb.CatalogException):  # fmt: skip
                raise AssertionError(f"DuckDB cannot run it: {error}\n{sql}") from error
            case.bad_rows = self._rows_that_raise(case)
            text, source = self._item(case)
            bad = ", ".join(map(str, case.bad_rows))
            guarded = f"SELECT c0, CASE WHEN c0 IN ({bad}) THEN NULL ELSE {text} END FROM {source}"
            case.native = self._column(guarded, case.dtype)

    def _item(self, case: Case) -> tuple[str, str]:
        """The DuckDB text of the expression, pinned, and of its FROM."""
        assert case.stage is not None
        node = case.stage.fragment
        assert isinstance(node, ProjectionExec), node
        renderer = _Renderer("duckdb", {})
        source = renderer.relation(renderer.plan(node.child, {x: i for i, x in enumerate(case.stage.leaves)}))  # fmt: skip
        text = renderer.scalar(node.items[1][1])
        return f"CAST({text} AS {duckdb_type(case.dtype)})", source

    def _rows_that_raise(self, case: Case) -> list[int]:
        text, source = self._item(case)
        # TRY refuses the volatile error(), so something else raises in its place.
        text = re.sub(r"CAST\(error\('(\w+)'\) AS", r"CAST(CAST(CAST('\1' AS INTEGER) AS VARCHAR) AS", text)  # fmt: skip
        sql = f"SELECT c0 FROM {source} WHERE TRY([{text}]) IS NULL ORDER BY 1"
        rows = [row[0] for row in self._cursor.execute(sql).fetchall()]
        assert rows, f"DuckDB raises for no row of {case.expr}"
        return rows

    def _column(self, sql: str, dtype: DataType) -> pa.Array:
        table = self._cursor.sql(f"FROM ({sql}) ORDER BY 1").to_arrow_table()
        column = table.column(1)
        kind = to_arrow(dtype)
        return pa.nulls(len(column)) if pa.types.is_null(kind) else column.cast(kind)

    # ------------------------------------------------------------ Spark

    def compare(self, cases: Sequence[Case]) -> list[str]:
        """What differs between Spark and the planned cases; Spark-only ones are checked too."""
        try:
            return self._compare(cases)
        except SPARK_ERRORS as error:
            if len(cases) > 1:
                middle = len(cases) // 2
                return self.compare(cases[:middle]) + self.compare(cases[middle:])
            return self._explain(cases[0], error)

    def _explain(self, case: Case, error: Exception) -> list[str]:
        text = str(error).split("\n")[0][:120]
        if not case.is_native:
            return []  # Spark runs it, and raises
        if isinstance(error, AnalysisException | ParseException):
            return [f"{case.expr}: native, but Spark refuses it: {text}"]
        return [f"{case.expr}: Spark raises in rows in which DuckDB does not: {text}"]

    def _compare(self, cases: Sequence[Case]) -> list[str]:
        items = ", ".join(f"{case.guarded} AS v{i}" for i, case in enumerate(cases))
        sql = f"SELECT id, {items} FROM {self.table}"
        frame = self.spark.sql(sql)
        types = spark_types(frame)[1:]
        wrong = [
            f"{case.expr}: Spark's type is {dtype}, ours {case.dtype}"
            for case, dtype in zip(cases, types, strict=True)
            if dtype != case.dtype
        ]
        rows = collect(frame).sort_by("c0")
        graph = plan_query(sql, self.tables.catalog, self.options)
        assert graph.fallback_reason is None, graph.fallback_reason
        text = render_fragment(graph.head, "spark", {})
        self._spark_view(graph.head)
        ours = collect(self.spark.sql(text)).sort_by("c0")
        for number, (case, dtype) in enumerate(zip(cases, types, strict=True)):
            expected = rows.column(f"c{number + 1}")
            wrong += _differences(case.expr, "our Spark text", expected, ours.column(f"c{number + 1}"))  # fmt: skip
            if case.native is not None and dtype == case.dtype:
                same = _nearly if case.is_approximate else _differences
                wrong += same(case.expr, "DuckDB", expected, case.native)
        return wrong

    def compare_types(self, cases: Sequence[Case]) -> list[str]:
        """Which types of cases that run on Spark are not what Spark says; no values."""
        try:
            items = ", ".join(f"{case.expr} AS v{i}" for i, case in enumerate(cases))
            types = spark_types(self.spark.sql(f"SELECT {items} FROM {self.table}"))
        except SPARK_ERRORS:
            if len(cases) == 1:
                return []  # Spark refuses it, and it is Spark that runs it
            middle = len(cases) // 2
            return self.compare_types(cases[:middle]) + self.compare_types(cases[middle:])
        return [
            f"{case.expr}: Spark's type is {dtype}, ours {case.dtype}"
            for case, dtype in zip(cases, types, strict=True)
            if dtype != case.dtype
        ]

    def _spark_view(self, stage: Stage) -> None:
        (leaf,) = stage.leaves
        assert isinstance(leaf, ScanExec)
        frame = self.spark.table(self.table)
        pairs = zip(leaf.outputs, leaf.source, strict=True)
        frame.select(*(frame[s].alias(f"c{c.id}") for c, s in pairs)).createOrReplaceTempView(
            "in_0"
        )


def _differences(
    expr: str, what: str, expected: pa.ChunkedArray, found: pa.Array | pa.ChunkedArray
) -> list[str]:
    left, right = canonical(expected), canonical(found)
    rows = [i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b]
    if not rows:
        return []
    first = rows[0]
    pair = (_shown(expected[first]), _shown(found[first]))
    values = f"Spark {pair[0]}, {what} {pair[1]}"
    return [f"{expr}: {len(rows)} rows differ, first id={first}: {values}"]


def _nearly(
    expr: str, what: str, expected: pa.ChunkedArray, found: pa.Array | pa.ChunkedArray
) -> list[str]:
    if not pa.types.is_floating(expected.type):
        return _differences(expr, what, expected, found)
    pairs = zip(expected.to_pylist(), found.to_pylist(), strict=True)
    rows = [i for i, (a, b) in enumerate(pairs) if not close(a, b, max(abs(a or 0), abs(b or 0)))]
    return [f"{expr}: {what} is far from Spark in rows {rows}"] if rows else []


def _shown(value: pa.Scalar) -> str:
    return str(value.value) if pa.types.is_temporal(value.type) else repr(value.as_py())


def _batches(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    for start in range(0, len(cases), BATCH):
        yield cases[start : start + BATCH]


@pytest.fixture(scope="module")
def proof(tables: EdgeTables, oracle: SparkSession) -> Proof:
    return Proof(tables, oracle)


def check(
    proof: Proof, expressions: Sequence[str], *, values_of_refused: bool = False
) -> tuple[list[str], list[Case]]:
    """What is wrong with the expressions, and the cases that could be planned."""
    wrong: list[str] = []
    cases: list[Case] = []
    for expr in expressions:
        try:
            case = proof.plan(expr)
        except SqlError as error:
            if not _refused_by_spark(proof, expr):
                wrong.append(f"{expr}: only the planner refuses it: {error}")
            continue
        except AssertionError as error:
            wrong.append(f"{expr}: {error}")
            continue
        cases.append(case)
    planned = [c for c in cases if c.stage is not None and (c.is_native or values_of_refused)]
    for batch in _batches(planned):
        wrong += proof.compare(batch)
    for batch in _batches([c for c in cases if c.stage is not None and c not in planned]):
        wrong += proof.compare_types(batch)
    return wrong, cases


def _refused_by_spark(proof: Proof, expr: str) -> bool:
    try:
        _ = proof.spark.sql(f"SELECT id, {expr} FROM {proof.table}").schema
    except SPARK_ERRORS:
        return True
    return False


def report(wrong: list[str]) -> str:
    return f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.mark.slow
def test_native_cases_run_on_duckdb_and_equal_spark(proof: Proof) -> None:
    wrong, cases = check(proof, share([e for group in NATIVE.values() for e in group], 4))
    wrong += [f"{c.expr}: is not native: {c.refusal}" for c in cases if not c.is_native]
    assert not wrong, report(wrong)


@pytest.mark.slow
def test_refused_cases_run_on_spark_with_our_types(proof: Proof) -> None:
    refused = share([e for group in REFUSED.values() for e in group], 2)
    wrong, cases = check(proof, refused, values_of_refused=True)
    wrong += [f"{c.expr}: is native" for c in cases if c.is_native]
    assert not wrong, report(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("family", list(EITHER))
def test_combinations_of_types_are_equal_where_they_are_native(proof: Proof, family: str) -> None:
    wrong, cases = check(proof, share(EITHER[family], 8 if family in GENERATED else 1))
    assert any(c.is_native for c in cases) or family == "try_casts"
    assert not wrong, report(wrong)


ZONED = [
    "year",
    "month",
    "day",
    "quarter",
    "dayofyear",
    "weekofyear",
    "dayofweek",
    "weekday",
    "hour",
    "minute",
    "second",
    "date_add",
    "datediff",
    "add_months",
    "last_day",
    "trunc",
    "time_bucket",
]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_native_times_are_equal_in_other_zones(
    tables: EdgeTables, oracle: SparkSession, zone: str
) -> None:
    session = oracle.newSession()
    for name in ("ansi.enabled", "codegen.wholeStage", "codegen.factoryMode"):
        session.conf.set(f"spark.sql.{name}", oracle.conf.get(f"spark.sql.{name}"))
    session.conf.set("spark.sql.session.timeZone", zone)
    session.read.parquet(*tables.files["e"]).createOrReplaceTempView("e")
    proof = Proof(tables, session, zone)
    expressions = [e for name in ZONED for e in NATIVE[name]]
    expressions += [f"{a} {op} {b}" for a in ("dt", "ts", "tn") for b in ("dt", "ts", "tn") for op in "=<"]  # fmt: skip
    expressions += [f"CAST({a} AS {t})" for a in ("dt", "ts", "tn") for t in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING")]  # fmt: skip
    expressions += ["coalesce(ts, dt)", "ts = '2024-02-29'", "greatest(dt, ts)", "dt BETWEEN ts AND tu"]  # fmt: skip
    expressions += ["to_json(struct(ts, tn, dt))", "CAST(array(ts, tu) AS STRING)"]
    wrong, _ = check(proof, expressions)
    assert not wrong, report(wrong)


def test_every_native_entry_has_a_case_and_names_its_proof(proof: Proof) -> None:
    native = {name for name, f in REGISTRY.items() if f.duckdb is not None}
    assert not native - set(NATIVE) - INTERNAL - ELSEWHERE, "native entries without a case"
    assert not set(NATIVE) - native, "cases of entries that are not native"
    assert not [name for name in native if not REGISTRY[name].proof], "entries without a proof"
    assert not [n for n, f in AGGREGATES.items() if f.duckdb and not f.proof]
    known = set(NATIVE) | set(REFUSED) | INTERNAL | ELSEWHERE
    assert set(REGISTRY) == known, "entries without any case"


def test_every_native_entry_was_run_by_its_own_cases(proof: Proof) -> None:
    for name, expressions in NATIVE.items():
        proof.functions.clear()
        for expr in expressions:
            proof.plan(expr, run=False)
        assert name in proof.functions, f"no case of '{name}' has it in its plan"


def test_every_native_cast_has_a_case(proof: Proof) -> None:
    kinds = ["tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz", "binary"]  # fmt: skip
    types = [*(parse_type(k) for k in kinds), decimal(15, 4)]
    native = {
        (a.kind, b.kind) for a in types for b in types if a != b and cast_reason(a, b) is None
    }
    proof.casts.clear()
    for expr in EITHER["casts"]:
        try:
            proof.plan(expr, run=False)
        except (SqlError, AssertionError):
            continue
    assert not native - proof.casts


@pytest.mark.parametrize("expr", ["trunc(dt, 'Q')", "trunc(dt, 'Y')"])
def test_units_of_trunc_are_what_spark_knows(proof: Proof, expr: str) -> None:
    wrong, _ = check(proof, [expr], values_of_refused=True)
    assert not wrong, report(wrong)
