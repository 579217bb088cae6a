"""Spark as an engine: errors by their class, typed parameters, clusters and Connect."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from stagecoach.infra.engines.spark.engine import analyze
from stagecoach.infra.engines.spark.query import literal_column
from stagecoach.infra.errors import QueryFailedError, TaskFailedError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ScanInput
from stagecoach.infra.runtime.stages.dispatch import run_sql, run_tasks
from stagecoach.infra.shuffle.manifest import ManifestError
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.spark.code_archive import code_zip
from stagecoach.infra.spark.jobs import cancel_stage, job_tag, tagged_job, was_canceled
from stagecoach.infra.spark.session import isolated_session
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.spec import ShuffleInput, TaskSettings, TaskSpec
from stagecoach.planner.errors import ForbiddenSqlError, ParameterError
from stagecoach.planner.plan.expressions import Literal, LiteralValue
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.types import (
    BIGINT,
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
    decimal,
)
from tests.share import in_test_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def spec(tmp_path: Path) -> TaskSpec:
    path = tmp_path / "t" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"k": range(100), "name": [f"n{i}" for i in range(100)]}), path)
    columns = (LeafColumn("c5", "k", BIGINT), LeafColumn("c6", "name", STRING))
    settings = TaskSettings(
        # With secrets, which travel as shares.
        store=open_store(tmp_path / "store", {"secret_key": "marked-secret-71"}).to_dict(),
        time_zone="UTC",
        memory_bytes=256 << 20,
        writer_memory_bytes=64 << 20,
        max_spill_bytes=0,
        spill_dir=str(tmp_path / "spill"),
        codec="lz4",
        directories=(str(path.parent),),
    )
    return TaskSpec(
        query="q",
        stage_id=0,
        fingerprint="a" * 64,
        task_index=0,
        sql="SELECT c5 AS c0 FROM in_0",
        inputs=(ScanInput(columns=columns, files=(DataFile(str(path), 100),)),),
        types=(BIGINT,),
        output=OutputPartitioning(),
        settings=settings,
    )


def with_sql(spec: TaskSpec, sql: str, *types: DataType) -> TaskSpec:
    return TaskSpec(**{**vars(spec), "sql": sql, "types": types})


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("SELECT c5 / 0 FROM in_0", "DIVIDE_BY_ZERO"),
        ("SELECT CAST(c6 AS INT) FROM in_0", "CAST_INVALID_INPUT"),
        ("SELECT nope FROM in_0", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("SELECT c5 FRM in_0", "PARSE_SYNTAX_ERROR"),
        ("SELECT raise_error('boom') FROM in_0", "USER_RAISED_EXCEPTION"),
        # pyspark has no class of its own for what this raises.
        ("SELECT (SELECT c5 FROM in_0)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
    ],
)
def test_mistakes_of_the_query_are_told_by_sparks_condition(
    spark: SparkSession, spec: TaskSpec, sql: str, condition: str
) -> None:
    with (
        isolated_session(spark, "UTC") as session,
        pytest.raises(QueryFailedError) as caught,
    ):
        text = SparkText(sql)
        views = {"in_0": spec.inputs[0]}
        run_sql(session, with_sql(spec, sql, BIGINT), text, views=views, parameters={})
    assert caught.value.condition == condition
    assert str(caught.value).startswith(f"[{condition}]") or condition == "PARSE_SYNTAX_ERROR"
    assert "\tat " not in str(caught.value)
    assert "ansi.enabled" not in str(caught.value), "no advice that cannot be followed"


def test_a_lost_input_is_not_a_mistake_of_the_query(spark: SparkSession, spec: TaskSpec) -> None:
    lost = ShuffleInput(
        columns=(LeafColumn("c5", "", BIGINT),),
        fingerprint="b" * 64,
        manifest_hash="c" * 64,
        stage="q/stage_9",
        low=0,
        high=2,
    )
    with isolated_session(spark, "UTC") as session, pytest.raises(ManifestError, match="q/stage_9"):
        run_sql(
            session,
            with_sql(spec, "SELECT * FROM in_0", BIGINT),
            SparkText("SELECT * FROM in_0"),
            views={"in_0": lost},
            parameters={},
        )


def test_what_a_pinned_type_cannot_hold_is_a_query_failure(
    spark: SparkSession, spec: TaskSpec
) -> None:
    wide = with_sql(spec, "SELECT c5 * 10000000000 FROM in_0", INT)
    with isolated_session(spark, "UTC") as session:
        reports = run_sql(
            session, wide, SparkText(wide.sql), views={"in_0": spec.inputs[0]}, parameters={}
        )
    assert [r.failure.kind for r in reports if r.failure] == ["query"]


@pytest.mark.parametrize(
    ("dtype", "value", "kind"),
    [
        (TINYINT, -3, "tinyint"),
        (SMALLINT, 3, "smallint"),
        (INT, -(2**31), "int"),
        (BIGINT, -(2**63), "bigint"),
        (FLOAT, 1.5, "float"),
        (DOUBLE, 1e300, "double"),
        (BOOLEAN, True, "boolean"),
        (STRING, "it's; DROP -- \\ \n :x", "string"),
        (decimal(10, 2), "-12.50", "decimal(4,2)"),
        (DATE, "2024-02-29", "date"),
        (TIMESTAMP, "2024-02-29 10:00:00.000001", "timestamp"),
        (TIMESTAMP_NTZ, "2024-02-29 10:00:00.000001", "timestamp_ntz"),
        (INT, None, "void"),
    ],
)
def test_parameters_are_typed_literals(
    spark: SparkSession, dtype: DataType, value: LiteralValue, kind: str
) -> None:
    literal = literal_column(spark, Literal(dtype, value))
    frame = spark.sql("SELECT :x AS x", args={"x": literal})
    assert frame.schema["x"].dataType.simpleString() == kind
    found = frame.selectExpr("CAST(x AS STRING) AS x").collect()[0]["x"]
    if dtype.kind == "decimal":
        assert Decimal(found) == Decimal(str(value))
    elif dtype.kind == "string":
        assert found == value
    else:
        assert (found is None) == (value is None)


def test_a_parameter_that_is_no_value_of_its_type_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ParameterError, match="not a valid date"):
        literal_column(spark, Literal(DATE, "1' OR '1'='1"))


def test_analysis_needs_no_data(spark: SparkSession) -> None:
    tables = [("T1", (Field("k", BIGINT), Field("a b", STRING)))]
    with isolated_session(spark, "UTC") as session:
        text = SparkText("SELECT k + 1, `a b`, k AS `a b` FROM t1")
        found = analyze(session, "q", text, tables, {})
    assert found == [("(k + 1)", "bigint"), ("a b", "string"), ("a b", "bigint")]


def test_views_of_one_session_are_not_those_of_another(spark: SparkSession) -> None:
    with isolated_session(spark, "UTC") as one, isolated_session(spark, "Asia/Tokyo") as other:
        one.sql("SELECT 1 AS x").createOrReplaceTempView("only_here")
        with pytest.raises(ForbiddenSqlError, match="only_here"):
            analyze(other, "q", SparkText("SELECT * FROM only_here"), [], {})
        assert one.conf.get("spark.sql.session.timeZone") == "UTC"
        assert other.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


def test_many_tasks_report_in_order_and_their_workers_serve_spark_too(
    spark: SparkSession, spec: TaskSpec
) -> None:
    specs = [
        TaskSpec(**{**vars(spec), "task_index": i, "sql": f"SELECT {i} AS c0"}) for i in range(9)
    ]
    reports = run_tasks(spark, specs)
    assert [report.task_index for report in reports] == list(range(9))
    assert [report.file.num_rows if report.file else 0 for report in reports] == [1] * 9
    with isolated_session(spark, "UTC") as session:
        others = run_sql(
            session, spec, SparkText(spec.sql), views={"in_0": spec.inputs[0]}, parameters={}
        )
    assert {report.pid for report in others} <= {report.pid for report in reports}


def test_an_error_that_no_report_can_tell_is_a_failed_task(
    spark: SparkSession, spec: TaskSpec
) -> None:
    unreadable = TaskSpec(**{**vars(spec), "types": ("nonsense",)})
    with pytest.raises(TaskFailedError, match=r"stage_0.*Spark failed"):
        run_tasks(spark, [unreadable])


@pytest.mark.slow
def test_a_long_duckdb_task_can_be_canceled(spark: SparkSession, spec: TaskSpec) -> None:
    sql = "SELECT count(*) AS c0 FROM range(100000) a(x), range(100000) b(y) WHERE x * y % 7 = 3"
    tag = job_tag("canceled-run", 0)
    raised: list[BaseException] = []

    def work() -> None:
        try:
            with tagged_job(spark, tag, "long"):
                run_tasks(spark, [with_sql(spec, sql, BIGINT)])
        except TaskFailedError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(3)
    assert cancel_stage("canceled-run", 0)
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert raised
    assert was_canceled(tag)
    assert not cancel_stage("canceled-run", 0)
    assert run_tasks(spark, [spec])[0].failure is None


_QUERY = """
    import sys
    from pathlib import Path
    import pyarrow as pa, pyarrow.parquet as pq
    from stagecoach.infra.catalog.catalog import load_catalog
    from stagecoach.infra.runtime.stages.run_stage import Run, read_result, run_stage
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.planner.options import PlannerOptions
    from stagecoach.planner.planning import plan_query

    folder = Path(sys.argv[1])
    (folder / "t").mkdir()
    rows = {"k": list(range(1000)), "name": [f"n{i % 7}" for i in range(1000)]}
    pq.write_table(pa.table(rows), folder / "t" / "a.parquet", row_group_size=100)
    (folder / "catalog.yaml").write_text("tables:\\n  t:\\n    location: t\\n")
    catalog = load_catalog(folder / "catalog.yaml")
    settings = EngineSettings(storage_root=str(folder / "store"), min_task_bytes=0)
    settings = settings.updated(dict(a.split("=", 1) for a in sys.argv[2:]))
    options = PlannerOptions(force_distribution=True, num_partitions=3)
    for sql, expected in (
        ("SELECT name, count(*) AS n FROM t GROUP BY name ORDER BY name", [143] * 6 + [142]),
        ("SELECT aes_encrypt(CAST(k AS STRING), '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef') AS h, k AS n FROM t WHERE k < 3 ORDER BY k", [0, 1, 2]),
    ):
        graph = plan_query(sql, catalog, options, name="q")
        context = Run(
            graph=graph, run_id="r" + str(expected[0]), root_run_id="r" + str(expected[0]),
            settings=settings, store=settings.open_store(), catalog=catalog,
        )
        pids = set()
        for stage in graph.stages:
            result = run_stage(stage.stage_id, context)
            pids |= {report.pid for report in result.reports}
        assert read_result(context)["n"].to_pylist() == expected
        assert pids and __import__("os").getpid() not in pids
    from stagecoach.infra.spark.session import stop_sessions
    stop_sessions()
    print("all is well")
"""


def run_elsewhere(folder: Path, *settings: str) -> str:
    """Run two queries in a process of its own: one process cannot have two kinds of Spark."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_QUERY), str(folder), *settings],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    return done.stdout + done.stderr[-3000:]


@pytest.mark.slow
@in_test_all
def test_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    output = run_elsewhere(tmp_path, "master=local-cluster[2,1,1024]")
    assert "all is well" in output, output


@pytest.fixture
def connect_url(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = Path(pyspark.__file__).parent
    command = [
        str(home / "bin" / "spark-submit"),
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
        *("--conf", "spark.ui.enabled=false"),
        *("--master", "local[2]"),
        "spark-internal",
    ]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    env.pop("PYTHONPATH", None)
    with open(tmp_path / "connect.log", "wb") as log:
        server = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, (tmp_path / "connect.log").read_text()
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.mark.slow
@in_test_all
def test_connect(tmp_path: Path, connect_url: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    output = run_elsewhere(folder, f"remote={connect_url}")
    assert "all is well" in output, output


def test_the_code_that_is_shipped_runs_by_itself(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(code_zip())!r}); import stagecoach.infra.worker.task as t; print(t.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert str(code_zip()) in done.stdout, done.stderr
