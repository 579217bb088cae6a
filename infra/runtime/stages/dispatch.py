"""Hands tasks to Spark: each task of a stage, each piece of an input, each partition of a result.

Driver code for classic Spark and Spark Connect. The stage of a task engine is one Spark job with
one Spark task each (`run_tasks`). A stage on Spark is Spark SQL over the same inputs, whose
partitions are written as the same map files (`run_sql`). All but `run_tasks` use the DataFrame API
alone. Nested functions are pickled by value, so executors import `stagecoach.infra.worker` and not
this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from stagecoach.infra.engines.protocol import Fragment, Relation
from stagecoach.infra.engines.spark.engine import FedRelation, SparkEngine
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
from stagecoach.infra.errors import TaskFailedError
from stagecoach.infra.reading.format_input import FormatInput
from stagecoach.infra.reading.inputs import ParquetInput, ScanInput
from stagecoach.infra.spark.bare_tasks import run_bare_tasks
from stagecoach.infra.spark.secret_channel import sent
from stagecoach.infra.spark.session_kinds import is_connect
from stagecoach.infra.spark.task_environment import EnvironmentCheck, environment_check
from stagecoach.infra.storage.forwarding import completed, is_forwarded
from stagecoach.infra.storage.stores import store_from_dict
from stagecoach.infra.worker.read_failures import new_failure_key, take_failure
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import InputSpec, TaskSpec
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.syntax.text import SparkText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# As text, it would be parsed by the server of a Connect session, with one more request.
_REPORT_SCHEMA = StructType([StructField("task", LongType()), StructField("report", StringType())])
_RANGE_SCHEMA = StructType([StructField("id", LongType(), nullable=False)])


def run_tasks(spark: SparkSession, specs: Sequence[TaskSpec]) -> list[TaskReport]:
    """Run tasks as one Spark job, one Spark task each.

    Args:
        spark: Any session; only its executors matter.
        specs: The tasks, numbered from 0 in order.

    Raises:
        TaskFailedError: A Spark task died (a task's own errors are in its report).
    """
    store = specs[0].settings.store
    check = environment_check(spark)
    reports: dict[int, TaskReport] = {}
    waiting, used = list(specs), None
    # Credentials may expire before a task begins; the driver has newer ones then.
    while waiting and (current := completed(store)) != used:
        used = current
        with sent(spark, current) as carried:
            for report in _run_tasks(spark, waiting, carried, check):
                reports[report.task_index] = report
        waiting = [s for s in waiting if is_forwarded(store) and _expired(reports[s.task_index])]
    return [reports[index] for index in sorted(reports)]


def _expired(report: TaskReport) -> bool:
    return report.failure is not None and report.failure.kind == "credentials"


def _run_tasks(
    spark: SparkSession,
    specs: Sequence[TaskSpec],
    store: Mapping[str, Any],
    check: EnvironmentCheck,
) -> list[TaskReport]:
    """Run tasks whose store is what `sent` has made of it."""
    # Settings and SQL are the same objects in all specs, so pickle writes them once.
    task = _task_function([_carried(spec, store) for spec in specs], check)
    count, stage = len(specs), specs[0].stage_name
    if is_connect(spark):
        numbers = spark.range(0, count, 1, count)
        # pyspark would ask the server for it; an attribute that it does not know harms nothing.
        cast("Any", numbers)._cached_schema = _RANGE_SCHEMA
        return _collect(numbers.mapInArrow(_of_batches(task), _REPORT_SCHEMA), stage)
    try:
        found = run_bare_tasks(spark.sparkContext, count, task)
    except SPARK_ERRORS as error:
        raise explain_error(error, specs[0].query, stage) from error
    return _reports(found)


def texts_of_tasks(spark: SparkSession, count: int, task: Callable[[int], str]) -> list[str]:
    """Run a function in so many tasks; return its texts, in no order.

    Args:
        spark: Any session.
        count: How many tasks.
        task: Called with the number of the task; needs nothing of ours where it runs.

    Raises:
        PySparkException, Py4JJavaError: Whatever Spark raises (`SPARK_ERRORS`).
    """
    if not is_connect(spark):
        return run_bare_tasks(spark.sparkContext, count, task)
    numbers = spark.range(0, count, 1, count)
    found = numbers.mapInArrow(_of_batches(task), _REPORT_SCHEMA).toArrow()
    texts: list[str] = found.column("report").to_pylist()
    return texts


def _carried(spec: TaskSpec, store: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as tasks carry it."""
    values = spec.to_dict()
    values["settings"]["store"] = store
    return values


def _task_function(payload: list[dict[str, Any]], check: EnvironmentCheck) -> Callable[[int], str]:
    failed = _failed_function()

    def run(index: int) -> str:
        import json  # pickling a function that refers to a module looks through all that are loaded

        from pyspark import TaskContext

        if (problem := check()) is not None:
            return failed(payload[index]["task_index"], problem)
        from stagecoach.infra.worker.process import settle
        from stagecoach.infra.worker.spec import TaskSpec
        from stagecoach.infra.worker.task import run_task

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        read = None if context is None else context.getLocalProperty
        report = run_task(TaskSpec.from_dict(payload[index], read), attempt)
        settle()
        return json.dumps(report.to_dict())

    return run


def _failed_function() -> Callable[[int, str], str]:
    def failed(index: int, problem: str) -> str:
        """The report of a task where our code cannot be imported."""
        import json

        failure = {"kind": "environment", "args": [problem]}
        lists: dict[str, list[Any]] = {"rows_in": [], "bytes_in": [], "log": []}
        report = {"task_index": index, "attempt": "", "file": None, "failure": failure, **lists}
        return json.dumps(report)

    return failed


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
    checked as far as they are not yet, and not read: Spark reads them by itself, as it does other
    files (`SparkFiles`).

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
    frame = spark.range(0, len(pieces), 1, len(pieces))
    with sent(spark, spec.settings.store) as store:
        payload = [_carried(TaskSpec(**piece), store) for piece in pieces]
        task = _check_function(payload, environment_check(spark))
        checked = frame.mapInArrow(_of_batches(task), _REPORT_SCHEMA)
        reports = _collect(checked, spec.stage_name)
    for report in reports:
        if report.failure is not None:
            raise report.failure.to_error(spec.stage_name, report.task_index)


def _pieces_of(leaf: InputSpec) -> Iterator[InputSpec]:
    if isinstance(leaf, ScanInput):
        yield from (replace(leaf, files=(file,)) for file in leaf.files)
    elif isinstance(leaf, FormatInput) and leaf.spark_files() is None:
        spread = leaf.spread()
        yield from (spread.part(i) for i in range(spread.num_parts))


def _check_function(payload: list[dict[str, Any]], check: EnvironmentCheck) -> Callable[[int], str]:
    failed = _failed_function()

    def run(index: int) -> str:
        import json

        from pyspark import TaskContext

        if (problem := check()) is not None:
            return failed(index, problem)
        from stagecoach.infra.worker.spec import TaskSpec
        from stagecoach.infra.worker.task import check_task

        context = TaskContext.get()
        read = None if context is None else context.getLocalProperty
        spec = TaskSpec.from_dict(payload[index], read)
        return json.dumps(check_task(spec, index).to_dict())

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
    settings = spec.settings
    with sent(spark, settings.store) as store:
        return _run_sql(spark, spec, store, text, views, parameters)


def _run_sql(
    spark: SparkSession,
    spec: TaskSpec,
    store: Mapping[str, Any],
    text: SparkText,
    views: Mapping[str, InputSpec],
    parameters: Mapping[str, Literal],
) -> list[TaskReport]:
    """Run SQL over tasks whose store is what `sent` has made of it."""
    with _frame(spark, spec, store, text, views, parameters) as (frame, check):
        write = _write_function({**_carried(spec, store), "inputs": []}, check)
        written = frame.mapInArrow(write, _REPORT_SCHEMA)
        return _reports(row["report"] for row in written.collect())


def sql_rows(
    spark: SparkSession,
    spec: TaskSpec,
    text: SparkText,
    *,
    views: Mapping[str, InputSpec],
    parameters: Mapping[str, Literal],
) -> pa.Table:
    """Run SQL in Spark as `run_sql` does, and return its rows; nothing is written.

    Args:
        spark: A session of the caller's own: its temporary views are replaced.
        spec: Says how inputs are read, and the types of the rows.
        text: What to run.
        views: What the SQL reads, by name; each is read whole.
        parameters: Values of the parameter markers in the SQL.

    Raises:
        StagecoachError: As `run_sql`.
    """
    schema = output_schema(spec.fragment_types)
    with (
        sent(spark, spec.settings.store) as store,
        _frame(spark, spec, store, text, views, parameters) as (frame, _),
    ):
        rows = frame.toArrow()
    return rows.rename_columns(schema.names).cast(schema)


@contextmanager
def _frame(
    spark: SparkSession,
    spec: TaskSpec,
    store: Mapping[str, Any],
    text: SparkText,
    views: Mapping[str, InputSpec],
    parameters: Mapping[str, Literal],
) -> Iterator[tuple[DataFrame, EnvironmentCheck]]:
    """The rows of SQL as a frame, whose errors are ours while the block runs."""
    settings = spec.settings
    failure_key, check = new_failure_key(spec.fingerprint), environment_check(spark)
    relations = {
        name: _relation(spec, store, leaf, failure_key, check) for name, leaf in views.items()
    }
    fragment = Fragment(text.text, relations, output_schema(spec.fragment_types))
    engine = SparkEngine(
        spark, parameters, verify_pages=settings.verify_pages, functions=settings.functions
    )
    try:
        yield engine.run(fragment), check
    except SPARK_ERRORS as error:
        failure = take_failure(store_from_dict(spec.settings.store), failure_key)
        if failure is None:
            raise explain_error(error, spec.query, spec.stage_name) from error
        if failure.kind == "query":  # of an input, which no other form of the query would mend
            raise TaskFailedError(spec.stage_name, None, str(failure.args[0])) from error
        raise failure.to_error(spec.stage_name, None) from error


def _relation(
    spec: TaskSpec,
    store: Mapping[str, Any],
    leaf: InputSpec,
    failure_key: str,
    check: EnvironmentCheck,
) -> Relation:
    """An input as Spark takes it: files that it reads by itself, or pieces that tasks read."""
    if isinstance(leaf, ScanInput) and all(f.local_path is not None for f in leaf.files):
        return ParquetInput(leaf.columns, leaf.files)
    if isinstance(leaf, FormatInput):
        if (files := leaf.spark_files()) is not None:
            return files
        leaf = leaf.spread()
    payload = _carried(replace(spec, inputs=(leaf,)), store)
    read = _read_function(payload, failure_key, check)
    return FedRelation(leaf.columns, _num_parts(leaf), read)


def _num_parts(leaf: InputSpec) -> int:
    """How many pieces of an input are read by themselves; see `read_input`."""
    if isinstance(leaf, ScanInput):
        return len(leaf.files)
    if isinstance(leaf, FormatInput):
        return leaf.num_parts
    return max(leaf.high - leaf.low, 1)  # of no partition, one piece without rows


def _read_function(
    payload: dict[str, Any], failure_key: str, check: EnvironmentCheck
) -> Callable[[int], Iterator[pa.RecordBatch]]:
    def read(index: int) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        if (problem := check()) is not None:
            raise RuntimeError(problem)
        from stagecoach.infra.storage.stores import store_from_dict
        from stagecoach.infra.worker.inputs import read_input
        from stagecoach.infra.worker.read_failures import keep_failure
        from stagecoach.infra.worker.spec import TaskSpec

        context = TaskContext.get()
        spec = TaskSpec.from_dict(payload, None if context is None else context.getLocalProperty)
        try:
            yield from read_input(spec, index)
        except Exception as error:
            keep_failure(store_from_dict(spec.settings.store), failure_key, error)
            raise

    return read


def _write_function(
    payload: dict[str, Any], check: EnvironmentCheck
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        if (problem := check()) is not None:
            raise RuntimeError(problem)
        from stagecoach.infra.worker.spec import TaskSpec
        from stagecoach.infra.worker.task import write_batches

        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        attempt = 0 if context is None else context.attemptNumber()
        read = None if context is None else context.getLocalProperty
        spec = TaskSpec.from_dict({**payload, "task_index": index}, read)
        report = write_batches(spec, batches, attempt)
        rows = {"task": [index], "report": [json.dumps(report.to_dict())]}
        yield pa.RecordBatch.from_pydict(rows)

    return write


def _collect(frame: DataFrame, stage: str) -> list[TaskReport]:
    try:
        if is_connect(frame.sparkSession):
            # Rows would be made by a setting, for which pyspark asks the server.
            return _reports(frame.toArrow().column("report").to_pylist())
        return _reports(row["report"] for row in frame.collect())
    except SPARK_ERRORS as error:
        raise explain_error(error, stage.split("/", 1)[0], stage) from error


def _reports(texts: Iterable[str]) -> list[TaskReport]:
    """Reports as tasks wrote them, in the order of the tasks."""
    reports = [TaskReport.from_dict(json.loads(text)) for text in texts]
    return sorted(reports, key=lambda report: report.task_index)
