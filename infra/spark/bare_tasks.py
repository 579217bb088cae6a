"""Jobs of nothing but tasks, on classic Spark.

A DataFrame would be analysed, optimised, planned and compiled, which takes longer than a small
task. What an RDD's own `collect` does besides running tasks takes the driver 6 to 20 ms, so it is
not used: see `docs/measurements.md`, "Overhead per stage".
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from py4j.java_collections import ListConverter, MapConverter
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

# What pyspark looks up by name for each job, for which the JVM looks through all of its archives.
_NAMES = ("PythonRDD", "PythonUtils", "SimplePythonFunction")
# A request fetches the result of one task, and takes less than the server that passes on many.
_FETCHED_ALONE = 4


class _Parts:
    """What the jobs of a context share: made in the JVM once, as pyspark makes it for each job."""

    def __init__(self, context: SparkContext) -> None:
        self._jvm = cast("Any", context._jvm)
        self._client = self._jvm._gateway_client
        for name in _NAMES:
            # Found as an attribute, and not by py4j in the JVM.
            setattr(self._jvm, name, getattr(self._jvm, name))
        # pyspark's own has the scheduler wait for a thread of this process after each task.
        self.accumulator = context._jsc.sc().collectionAccumulator()
        self._rows: dict[int, JavaObject] = {}
        self._values: dict[str, tuple[Any, JavaObject]] = {}

    def rows(self, context: SparkContext, count: int) -> JavaObject:
        """An RDD of so many partitions without rows; `parallelize` of pyspark writes a file."""
        if count not in self._rows:
            empty = context._jsc.parallelize(self._jvm.java.util.ArrayList(), count)
            self._rows[count] = empty.rdd()
        return self._rows[count]

    def value(self, name: str, value: list[Any] | dict[str, str]) -> JavaObject:
        """A list or mapping in the JVM, the same one for as long as it is equal."""
        known = self._values.get(name)
        if known is None or known[0] != value:
            convert = (MapConverter if isinstance(value, dict) else ListConverter)().convert
            known = self._values[name] = (value.copy(), convert(value, self._client))
        return known[1]


_parts: WeakKeyDictionary[SparkContext, _Parts] = WeakKeyDictionary()


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
    from pyspark.core.rdd import _prepare_for_python_RDD
    from pyspark.util import _load_from_socket

    def run(index: int, nothing: Iterable[None]) -> Iterator[str]:
        list(nothing)  # a worker is used again only where its input was read to the end
        yield task(index)

    jvm: Any = context._jvm
    parts = _parts.get(context) or _parts.setdefault(context, _Parts(context))
    serializer = context.serializer
    command, broadcasts, environment, includes = _prepare_for_python_RDD(
        context, (run, None, serializer, serializer)
    )
    function = jvm.SimplePythonFunction(
        bytearray(command),
        parts.value("environment", environment),
        parts.value("includes", includes),
        context.pythonExec,
        context.pythonVer,
        broadcasts or parts.value("broadcasts", []),
        parts.accumulator,
    )
    tasks = jvm.PythonRDD(parts.rows(context, count), function, False, False).asJavaRDD()
    # `collect` has the closures of two large classes read from their archive and looked through.
    found = _result(tasks.collectAsync())
    if count <= _FETCHED_ALONE:
        # The end of a list would come as an exception, which pyspark asks Java much about.
        return [text for i in range(count) for text in pickle.loads(found.get(i))]
    served = jvm.PythonRDD.serveIterator(jvm.PythonUtils.toSeq(found).iterator(), "reports")
    with _load_from_socket(served, serializer) as stream:
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
