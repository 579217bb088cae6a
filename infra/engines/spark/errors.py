"""Spark's errors, and which of ours stands for each."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from stagecoach.infra.errors import ExecutorError, FunctionError, QueryFailedError, TaskFailedError
from stagecoach.infra.functions.errors import problem_in
from stagecoach.infra.spark.guard.plan_guard import REFUSAL, refused
from stagecoach.planner.errors import TOO_MANY_ROWS, StagecoachError

# An `Error` of Java, not one of Spark's own: no condition, no SQLSTATE.
_STACK_OVERFLOW = "java.lang.StackOverflowError"

_FILE_ERROR = "FAILED_READ_FILE"
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"[^\n]*error=2\b')
_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\] Python in worker has different version: (\S+?) than that in "
    r"driver: (\S+?),"
)
_NO_ANSI = re.compile(
    r" (?:If necessary,? )?set \"?spark\.sql\.ansi\.enabled\"? to \"?false\"? to bypass this error"
    r"[^.]*\.",
    re.IGNORECASE,
)
"""Advice that nobody can follow: sessions of ours are in ANSI mode."""
_MALFORMED = re.compile(r"\[(MALFORMED_RECORD_IN_PARSING[.\w]*)\] .*")

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: pyspark leaves exceptions that it has no class for as py4j's."""

# SQLSTATE classes of errors that lie in the query or its data: cardinality, data exceptions,
# constraints, missing features, syntax or access rules, limits, what the query itself raises.
_QUERY_STATES = frozenset({"0A", "21", "22", "23", "42", "54", "P0"})


def explain_error(
    error: PySparkException | Py4JJavaError, query: str, stage: str
) -> StagecoachError:
    """The error of ours that stands for one of Spark's, chosen by its condition and SQLSTATE."""
    condition, state, text = _describe(error)
    text = _NO_ANSI.sub("", text)
    if (found := problem_in(text)) is not None:
        if found.unusable is not None:
            return FunctionError(*found.unusable)
        first, _, trace = found.text.partition("\n")
        return QueryFailedError(query, condition, f"{first}, in {stage}\n{trace}".strip())
    if (problem := _executor_problem(text)) is not None:
        return ExecutorError(f"{stage}: {problem}")
    if condition == "USER_RAISED_EXCEPTION" and TOO_MANY_ROWS in text:  # by SQL of the planner
        condition, text = "SCALAR_SUBQUERY_TOO_MANY_ROWS", TOO_MANY_ROWS
    if REFUSAL in text:  # by a server of ours
        return refused(text.partition(REFUSAL)[2].splitlines()[0])
    if isinstance(error, AnalysisException) or state[:2] in _QUERY_STATES:
        return QueryFailedError(query, condition, text)
    if _STACK_OVERFLOW in str(error):
        text = "the query is nested too deeply for Spark, whose stack overflowed; nest it less"
        return QueryFailedError(query, "STACK_OVERFLOW", text)
    return TaskFailedError(stage, None, f"Spark failed with {condition}: {_main_line(text)}")


def _executor_problem(text: str) -> str | None:
    """What keeps executors from running Python at all; None if that is not what the text says."""
    if found := _NO_PYTHON.search(text):
        return (
            f"an executor has no Python {found[1]!r}; name the executors' own with the variable "
            "PYSPARK_PYTHON of the driver"
        )
    if found := _OTHER_PYTHON.search(text):
        return (
            f"an executor has Python {found[1]}, the driver has {found[2]}; use the same minor "
            "version on both, or name another one with the variable PYSPARK_PYTHON of the driver"
        )
    return None


def _main_line(text: str) -> str:
    """The line that says what is wrong: the first, or the last of a Python traceback below it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    if not lines[0].endswith(":"):
        return lines[0]
    told = (line for line in reversed(lines[1:]) if not line.startswith(("SQLSTATE", "at ")))
    return f"{lines[0]} {next(told, 'it says nothing more')}"


def _describe(error: PySparkException | Py4JJavaError) -> tuple[str, str, str]:
    """Spark's error condition, SQLSTATE and message (without the JVM's stack trace)."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause is not None:
            # Not every Throwable of Java is one of Spark's.
            if _has_condition(cause):
                found = cause.getCondition(), cause.getSqlState() or "", cause.getMessage()
                # What is wrong with the file is below the error that names it.
                inner = cause.getCause() if found[0].startswith(_FILE_ERROR) else None
                if inner is None or not _has_condition(inner):
                    return found
                return inner.getCondition(), inner.getSqlState() or "", inner.getMessage()
            cause = cause.getCause()
        return "INTERNAL_ERROR", "", str(error.java_exception)
    condition = error.getCondition() or type(error).__name__
    if condition.startswith(_FILE_ERROR) and (record := _MALFORMED.search(str(error))):
        return record[1], "22023", record[0]
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
