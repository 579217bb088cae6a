"""Jobs of nothing but tasks, on classic Spark.

A DataFrame would be analysed, optimised, planned and compiled, which takes longer than a small
task. What an RDD's own `collect` does besides running tasks takes the driver 6 to 20 ms, so it is
not used: see `docs/measurements.md`, "Overhead per stage".
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

# What pyspark looks up by name for each job, for which the JVM looks through all of its archives.
_NAMES = ("PythonRDD", "PythonUtils", "SimplePythonFunction")
# A request fetches the result of one task, and takes less than the server that passes on many.
_FETCHED_ALONE = 4

_empty: WeakKeyDictionary[SparkContext, dict[int, JavaObject]] = WeakKeyDictionary()


def run_bare_tasks(context: SparkContext, count: int, task: Callable[[int], str]) -> list[str]:
    """Run a function in so many tasks of one job.

    Args:
        context: Of classic Spark.
        count: How many tasks.
        task: Called with the number of the task; needs nothing of ours where it runs.

    Returns:
        What it returned, in the order of the tasks.

    Raises:
        Py4JJavaError: The job failed.
    """
    from pyspark.core.rdd import RDD
    from pyspark.util import _load_from_socket

    def run(index: int, nothing: Iterable[None]) -> Iterator[str]:
        list(nothing)  # a worker is used again only where its input was read to the end
        yield task(index)

    rows: RDD[None] = RDD(_empty_rows(context, count), context, context.serializer)
    tasks: Any = rows.mapPartitionsWithIndex(run)
    # `collect` has the closures of two large classes read from their archive and looked through.
    found = _result(tasks._jrdd.collectAsync())
    if count <= _FETCHED_ALONE:
        # The end of a list would come as an exception, which pyspark asks Java much about.
        return [text for i in range(count) for text in pickle.loads(found.get(i))]
    jvm: Any = context._jvm
    served = jvm.PythonRDD.serveIterator(jvm.PythonUtils.toSeq(found).iterator(), "reports")
    with _load_from_socket(served, tasks._jrdd_deserializer) as stream:
        return list(stream)


def _result(future: Any) -> Any:
    """What a job came to, or the error that it failed with, as `collect` raises it."""
    try:
        return future.get()
    except Py4JJavaError as error:
        wrapped = error.java_exception
        if wrapped.getClass().getName() != "java.util.concurrent.ExecutionException":
            raise
        raise Py4JJavaError(error.errmsg, wrapped.getCause()) from None


def _empty_rows(context: SparkContext, count: int) -> JavaObject:
    """An RDD of so many partitions without rows; `SparkContext.parallelize` would write a file."""
    known = _empty.get(context)
    if known is None:
        _look_up_names(context)
        known = _empty[context] = {}
    if count not in known:
        jvm: Any = context._jvm
        known[count] = context._jsc.parallelize(jvm.java.util.ArrayList(), count)
    return known[count]


def _look_up_names(context: SparkContext) -> None:
    """Have pyspark find its classes as attributes, which py4j asks the JVM for only if missing."""
    jvm: Any = context._jvm
    for name in _NAMES:
        setattr(jvm, name, getattr(jvm, name))
