"""Spark as an engine, and as what runs tasks: in, task specs or SQL over views; out, reports.

Driver code for classic Spark and Spark Connect. A DuckDB stage is one Spark job with one task each
(`run_tasks`); a Spark stage is Spark SQL over the same inputs whose partitions are written as the
same map files (`run_sql`). All but `run_tasks` use the DataFrame API alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from infra.engines.chunk_inputs import ChunkInput
from infra.engines.errors import QueryError, QueryFailedError
from infra.engines.spark_query import query_frame
from infra.errors import TaskFailedError
from infra.runtime.read_failures import new_failure_key, take_failure
from infra.runtime.task_spec import InputSpec, ScanInput, TaskReport, TaskSpec
from infra.spark.guard.plan_guard import REFUSAL, refused
from infra.spark.session import is_connect
from infra.storage.stores import store_from_dict
from planner.errors import StagecoachError
from planner.expressions import Literal
from planner.syntax.text import SparkText
from planner.types import Field

if TYPE_CHECKING:
    from pyspark.core.rdd import RDD
    from pyspark.sql import DataFrame, SparkSession

# An `Error` of Java, not one of Spark's own: no condition, no SQLSTATE.
_STACK_OVERFLOW = "java.lang.StackOverflowError"
REPORT_SCHEMA = "task bigint, report string"

_VERIFY_PAGES = "parquet.page.verify-checksum.enabled"

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: pyspark leaves exceptions that it has no class for as py4j's."""

# SQLSTATE classes of errors that lie in the query or its data: cardinality, data exceptions,
# constraints, missing features, syntax or access rules, limits, what the query itself raises.
_QUERY_STATES = frozenset({"0A", "21", "22", "23", "42", "54", "P0"})


def run_tasks(spark: SparkSession, specs: Sequence[TaskSpec]) -> list[TaskReport]:
    """Run tasks as one Spark job, one Spark task each.

    Args:
        spark: Any session; only its executors matter.
        specs: The tasks, numbered from 0 in order.

    Raises:
        TaskFailedError: A Spark task died (a task's own errors are in its report).
    """
    # Settings and SQL are the same objects in all specs, so pickle writes them once.
    task = _task_function([spec.to_dict() for spec in specs])
    count, stage = len(specs), specs[0].stage_name
    if is_connect(spark):
        frame = spark.range(0, count, 1, count).mapInArrow(_of_batches(task), REPORT_SCHEMA)
        return _collect(frame, stage)
    try:
        found = _bare_tasks(spark, count, task).collect()
    except SPARK_ERRORS as error:
        raise explain_error(error, specs[0].query, stage) from error
    return _reports(found)


def _bare_tasks(spark: SparkSession, count: int, task: Callable[[int], str]) -> RDD[str]:
    """A job of nothing but tasks.

    A DataFrame would be analysed, optimised, planned and compiled, which takes longer than a small
    task; and `SparkContext.parallelize` writes a file.
    """
    from pyspark.core.rdd import RDD

    def run(index: int, nothing: Iterable[None]) -> Iterator[str]:
        list(nothing)  # a worker is used again only where its input was read to the end
        yield task(index)

    context = spark.sparkContext
    jvm: Any = context._jvm
    empty = context._jsc.parallelize(jvm.java.util.ArrayList(), count)
    tasks: RDD[None] = RDD(empty, context, context.serializer)
    return tasks.mapPartitionsWithIndex(run)


def _task_function(payload: list[dict[str, Any]]) -> Callable[[int], str]:
    # A nested function is pickled by value, so executors do not import this module (and pyspark's
    # driver side with it).
    def run(index: int) -> str:
        import json  # pickling a function that refers to a module looks through all that are loaded

        from pyspark import TaskContext

        from infra.runtime.task import run_task
        from infra.runtime.task_spec import TaskSpec
        from infra.runtime.worker import settle

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        report = run_task(TaskSpec.from_dict(payload[index]), attempt)
        settle()
        return json.dumps(report.to_dict())

    return run


def _of_batches(
    task: Callable[[int], str],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pydict({"task": [index], "report": [task(index)]})

    return run


def check_inputs(spark: SparkSession, spec: TaskSpec, leaves: Sequence[InputSpec]) -> None:
    """Read inputs piece by piece, and raise the first error as itself.

    What Spark passes on of an error in a task that feeds it is a text. Local Parquet files are
    checked as far as they are not yet, and not read: Spark reads them by itself.

    Args:
        spark: A session.
        spec: Says how inputs are read.
        leaves: What to read.

    Raises:
        StagecoachError: What reading an input raises.
        TaskFailedError: Spark itself failed.
    """
    pieces = [{**vars(spec), "inputs": (piece,)} for leaf in leaves for piece in _pieces_of(leaf)]
    if not pieces:
        return
    payload = [TaskSpec(**piece).to_dict() for piece in pieces]
    frame = spark.range(0, len(pieces), 1, len(pieces))
    reports = _collect(
        frame.mapInArrow(_of_batches(_check_function(payload)), REPORT_SCHEMA), spec.stage_name
    )
    for report in reports:
        if report.failure is not None:
            raise report.failure.to_error(spec.stage_name, report.task_index)


def _pieces_of(leaf: InputSpec) -> Iterator[InputSpec]:
    if isinstance(leaf, ScanInput):
        yield from (replace(leaf, files=(file,)) for file in leaf.files)
    elif isinstance(leaf, ChunkInput):
        spread = leaf.spread()
        yield from (spread.part(i) for i in range(len(spread.parts)))


def _check_function(payload: list[dict[str, Any]]) -> Callable[[int], str]:
    def run(index: int) -> str:
        import json

        from infra.runtime.task import check_task
        from infra.runtime.task_spec import TaskSpec

        return json.dumps(check_task(TaskSpec.from_dict(payload[index]), index).to_dict())

    return run


def run_sql(
    spark: SparkSession,
    spec: TaskSpec,
    text: SparkText,
    *,
    views: Mapping[str, InputSpec],
    parameters: Mapping[str, Literal],
) -> list[TaskReport]:
    """Run SQL in Spark and write each partition of its result as a map file, in order.

    Args:
        spark: A session of the caller's own: its temporary views are replaced.
        spec: Says where the output goes; task numbers come from Spark.
        text: What to run.
        views: What the SQL reads, by name; each is read whole.
        parameters: Values of the parameter markers in the SQL.

    Raises:
        ForbiddenSqlError: The query does more than read the views.
        QueryFailedError: Spark refuses the SQL or fails on the data.
        TaskFailedError: Spark itself failed.
    """
    failure_key = new_failure_key(spec.fingerprint)
    try:
        for name, leaf in views.items():
            _leaf_frame(spark, spec, leaf, failure_key).createOrReplaceTempView(_quote(name))
        frame = query_frame(spark, text, parameters)
        if len(frame.columns) != len(spec.fragment_types):
            raise QueryError(
                f"Spark gives {len(frame.columns)} columns, the plan has {len(spec.fragment_types)}"
            )
        named = frame.toDF(*(f"c{i}" for i in range(len(spec.fragment_types))))
        written = named.mapInArrow(_write_function({**spec.to_dict(), "inputs": []}), REPORT_SCHEMA)
        return _reports(row["report"] for row in written.collect())
    except SPARK_ERRORS as error:
        failure = take_failure(store_from_dict(spec.settings.store), failure_key)
        if failure is None:
            raise explain_error(error, spec.query, spec.stage_name) from error
        if failure.kind == "query":  # of an input, which no other form of the query would mend
            raise TaskFailedError(spec.stage_name, None, str(failure.args[0])) from error
        raise failure.to_error(spec.stage_name, None) from error


def analyze(
    spark: SparkSession,
    query: str,
    text: SparkText,
    tables: Sequence[tuple[str, tuple[Field, ...]]],
    parameters: Mapping[str, Literal],
) -> list[tuple[str, str]]:
    """Names and types (as Spark prints them) of a query's columns, by Spark's own analysis.

    Args:
        spark: A session of the caller's own: its temporary views are replaced.
        query: Name of the query.
        text: The query.
        tables: Tables and their columns; no data is read.
        parameters: Values of the parameter markers.

    Raises:
        ForbiddenSqlError: The query does more than read the tables.
        QueryFailedError: Spark refuses the query.
        TaskFailedError: Spark itself failed.
    """
    try:
        for name, fields in tables:
            _empty_frame(spark, fields).createOrReplaceTempView(_quote(name))
        schema = query_frame(spark, text, parameters).schema
    except SPARK_ERRORS as error:
        raise explain_error(error, query, query) from error
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def explain_error(
    error: PySparkException | Py4JJavaError, query: str, stage: str
) -> StagecoachError:
    """The error of ours that stands for one of Spark's, chosen by its condition and SQLSTATE."""
    condition, state, text = _describe(error)
    if REFUSAL in text:  # by a server of ours
        return refused(text.partition(REFUSAL)[2].splitlines()[0])
    if isinstance(error, AnalysisException) or state[:2] in _QUERY_STATES:
        return QueryFailedError(query, condition, text)
    if _STACK_OVERFLOW in str(error):
        text = "the query is nested too deeply for Spark, whose stack overflowed; nest it less"
        return QueryFailedError(query, "STACK_OVERFLOW", text)
    return TaskFailedError(stage, None, f"Spark failed with {condition}: {_main_line(text)}")


def _main_line(text: str) -> str:
    """The line that says what is wrong: the first, or the last of a Python traceback below it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    if not lines[0].endswith(":"):
        return lines[0]
    told = (line for line in reversed(lines[1:]) if not line.startswith(("SQLSTATE", "at ")))
    return f"{lines[0]} {next(told, 'it says nothing more')}"


def _write_function(
    payload: dict[str, Any],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from infra.runtime.task import write_batches
        from infra.runtime.task_spec import TaskSpec

        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        attempt = 0 if context is None else context.attemptNumber()
        spec = TaskSpec.from_dict({**payload, "task_index": index})
        report = write_batches(spec, batches, attempt)
        rows = {"task": [index], "report": [json.dumps(report.to_dict())]}
        yield pa.RecordBatch.from_pydict(rows)

    return write


def _read_function(
    payload: dict[str, Any], failure_key: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from infra.runtime.read_failures import keep_failure
        from infra.runtime.task_inputs import read_input
        from infra.runtime.task_spec import TaskSpec
        from infra.storage.stores import store_from_dict

        spec = TaskSpec.from_dict(payload)
        for batch in batches:
            for index in batch.column(0).to_pylist():
                try:
                    yield from read_input(spec, index)
                except Exception as error:
                    keep_failure(store_from_dict(spec.settings.store), failure_key, error)
                    raise

    return read


def _leaf_frame(
    spark: SparkSession, spec: TaskSpec, leaf: InputSpec, failure_key: str
) -> DataFrame:
    fields = tuple(Field(c.name, c.dtype) for c in leaf.columns)
    if isinstance(leaf, ScanInput):
        if not leaf.files:
            return _empty_frame(spark, fields)
        if all(f.local_path is not None for f in leaf.files):
            return _parquet_frame(spark, leaf, verify_pages=spec.settings.verify_pages)
    if isinstance(leaf, ChunkInput):
        if not leaf.parts:
            return _empty_frame(spark, fields)
        leaf = leaf.spread()
    parts = max(1, _num_parts(leaf))
    payload = TaskSpec(**{**vars(spec), "inputs": (leaf,)}).to_dict()
    return spark.range(0, parts, 1, parts).mapInArrow(
        _read_function(payload, failure_key), _ddl(fields)
    )


def _num_parts(leaf: InputSpec) -> int:
    """How many pieces of an input are read by themselves; see `read_input`."""
    if isinstance(leaf, ChunkInput):
        return len(leaf.parts)
    return len(leaf.files) if isinstance(leaf, ScanInput) else leaf.high - leaf.low


def _parquet_frame(spark: SparkSession, leaf: ScanInput, *, verify_pages: bool) -> DataFrame:
    stored = tuple(Field(c.source, c.dtype) for c in leaf.columns)
    paths = [_escape_glob(f.local_path or "") for f in leaf.files]
    # Spark's own check, by the checksums of pages, is off by default.
    reader = spark.read.schema(_ddl(stored)).option(_VERIFY_PAGES, str(verify_pages).lower())
    first = leaf.files[0]
    if first.constants:  # Spark reads them from the names of the folders below the table's
        root = first.local_path or ""
        for _ in range(len(first.constants) + 1):
            root = os.path.dirname(root)
        reader = reader.option("basePath", root)
    frame = reader.parquet(*paths)
    return frame.select(*(frame[_quote(c.source)].alias(c.name) for c in leaf.columns))


def _empty_frame(spark: SparkSession, fields: tuple[Field, ...]) -> DataFrame:
    return spark.createDataFrame([], _ddl(fields))


def _ddl(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{_quote(f.name)} {ddl_type(f)}" for f in fields)


def ddl_type(field: Field) -> str:
    """Spark's spelling of a field's type, member names quoted."""
    dtype = field.dtype
    match dtype.kind:
        case "array":
            return f"array<{ddl_type(dtype.fields[0])}>"
        case "map":
            return f"map<{ddl_type(dtype.fields[0])},{ddl_type(dtype.fields[1])}>"
        case "struct":
            return f"struct<{','.join(f'{_quote(f.name)}:{ddl_type(f)}' for f in dtype.fields)}>"
    return str(dtype)


def _collect(frame: DataFrame, stage: str) -> list[TaskReport]:
    try:
        rows = frame.collect()
    except SPARK_ERRORS as error:
        raise explain_error(error, stage.split("/", 1)[0], stage) from error
    return _reports(row["report"] for row in rows)


def _reports(texts: Iterable[str]) -> list[TaskReport]:
    """Reports as tasks wrote them, in the order of the tasks."""
    reports = [TaskReport.from_dict(json.loads(text)) for text in texts]
    return sorted(reports, key=lambda report: report.task_index)


def _describe(error: PySparkException | Py4JJavaError) -> tuple[str, str, str]:
    """Spark's error condition, SQLSTATE and message (without the JVM's stack trace)."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause is not None:
            # Not every Throwable of Java is one of Spark's.
            if _has_condition(cause):
                return cause.getCondition(), cause.getSqlState() or "", cause.getMessage()
            cause = cause.getCause()
        return "INTERNAL_ERROR", "", str(error.java_exception)
    condition = error.getCondition() or type(error).__name__
    text = str(error).split("\n\nJVM stacktrace:", 1)[0].strip()
    return condition, error.getSqlState() or "", text


def _has_condition(throwable: Any) -> bool:
    jvm = throwable.getClass()
    name = "org.apache.spark.SparkThrowable"
    while jvm is not None:
        if any(i.getName() == name for i in jvm.getInterfaces()):
            return throwable.getCondition() is not None
        jvm = jvm.getSuperclass()
    return False


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _escape_glob(path: str) -> str:
    return "".join(f"\\{c}" if c in "{}[]*?\\" else c for c in path)
