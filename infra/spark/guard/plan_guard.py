"""Walks over the plans that Spark makes of a SQL text, and refuses those that do more than read.

This wall does not trust the parser of ours: Spark's own parsed plan is checked before it is
analysed, and its analysed plan before it runs. Where Spark runs in this process, or in a server of
ours, every node is compared with a list of classes (`allowed_classes.txt`). Of any other Spark
Connect server only the text of the analysed plan can be asked for.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stagecoach.infra.spark.guard.jvm_code import java_object
from stagecoach.planner.errors import ForbiddenSqlError, SqlError, UnknownFunctionError
from stagecoach.planner.syntax.outside import FORBIDDEN_FUNCTIONS
from stagecoach.planner.syntax.parse import TABLE_FUNCTIONS

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

REFUSAL = "Stagecoach refuses the query: its plan "
"""How a server of ours begins the message of a refusal (`PlanGuard.java`)."""

_PACKAGE = "org.apache.spark.sql.catalyst"
# Nodes of data frames that this program builds without SQL: tasks, and the views of their inputs.
_OF_DATA_FRAMES = (
    "org.apache.spark.sql.catalyst.expressions.PythonUDF",
    "org.apache.spark.sql.catalyst.plans.logical.MapInArrow",
    "org.apache.spark.sql.execution.LogicalRDD",
    "org.apache.spark.sql.execution.command.CreateViewCommand",
    "org.apache.spark.sql.execution.datasources.LogicalRelation",
)
# In the text of a plan: a node at its depth, and those that no SELECT over views has.
_NODE = re.compile(r"^(?P<indent>[\s:+|-]*)'?(?P<name>\w+)")
_FOREIGN_NODE = re.compile(
    r"ScriptTransformation|HiveTableRelation|\w*Command|\w*Python\w*|MapIn\w+|FlatMap\w+|InsertInto\w*|"
    r"(Create|Drop|Alter|Load|Set)[A-Z]\w+"
)
_FOREIGN_CALL = re.compile(rf"\b({'|'.join(sorted(FORBIDDEN_FUNCTIONS))})\(", re.IGNORECASE)
_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== ", re.DOTALL)

_CALL = re.compile(r"calls the function '(.*)'")
# Spark parses them by themselves where a unit comes first, else as functions, which they are not.
_OF_UNITS = ("timestampadd", "timestampdiff", "timediff")

_lock = threading.Lock()
_guards: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


def check_parsed(spark: SparkSession, sql: str, functions: Sequence[str] = ()) -> None:
    """Have a classic session parse a text, and check the plan.

    Args:
        spark: The session.
        sql: The text.
        functions: Names of functions that it may call besides those of Spark, in lower case.

    Raises:
        ForbiddenSqlError: It does more than read temporary views of the session.
        ParseException: Spark refuses the text.
    """
    session: Any = spark._jsparkSession
    plan = session.sessionState().sqlParser().parsePlan(sql)
    names = _java_list(spark.sparkContext, functions)
    _refuse(_guard(spark.sparkContext).checkParsed(plan, session, names))


def check_analyzed(frame: DataFrame, functions: Sequence[Any] = ()) -> None:
    """Check the analysed plan of a query of a classic session.

    Args:
        frame: The query.
        functions: The Python functions that it may call, as Java objects: those of the project that
            this program has registered.

    Raises:
        ForbiddenSqlError: It does more than read temporary views.
    """
    plan = frame._jdf.queryExecution().analyzed()
    context = frame.sparkSession.sparkContext
    _refuse(_guard(context).checkAnalyzed(plan, _java_list(context, functions)))


def check_foreign(frame: DataFrame, sql: str) -> None:
    """Check what a Spark Connect server that is not ours tells of a query's analysed plan.

    Args:
        frame: The query.
        sql: Its text; words of it are not taken for calls in the plan.

    Raises:
        ForbiddenSqlError: The plan names a program, a command, a function of users or reflection.
    """
    text: str = frame._explain_string(extended=True)  # type: ignore[operator]
    found = _ANALYZED.search(f"{text}\n== ")
    plan = "\n".join(_above_views(found[1] if found else text))
    for line in plan.splitlines():
        node = _NODE.match(line)
        if node and _FOREIGN_NODE.fullmatch(node["name"]):
            _refuse(f"has a {node['name']}")
    if (call := _FOREIGN_CALL.search(plan)) and not _FOREIGN_CALL.search(sql):
        _refuse(f"calls the function '{call[1]}'")


def install_guard(spark: SparkSession) -> None:
    """Have all sessions that are made of this classic one refuse such texts by themselves."""
    session: Any = spark._jsparkSession
    _guard(spark.sparkContext).install(session.extensions())


def new_guard(jvm: Any) -> Any:
    """Return a `PlanGuard` of a JVM, of which py4j has a view."""
    functions = sorted(TABLE_FUNCTIONS), sorted(FORBIDDEN_FUNCTIONS)
    lists = (allowed_classes(), _OF_DATA_FRAMES, *functions)
    return java_object(jvm, __package__, "PlanGuard", *map("\n".join, lists))


@functools.cache
def allowed_classes() -> tuple[str, ...]:
    """The classes of nodes that a plan of a SELECT may have."""
    text = resources.files(__package__).joinpath("allowed_classes.txt").read_text(encoding="utf-8")
    names: list[str] = []
    package = _PACKAGE
    for line in text.splitlines():
        if line.startswith("["):
            package = f"{_PACKAGE}.{line.strip('[]')}"
        elif not line.startswith("#"):
            names += [f"{package}.{name}" for name in line.split()]
    return tuple(names)


def _guard(context: SparkContext) -> Any:
    with _lock:
        if context not in _guards:
            _guards[context] = new_guard(context._jvm)
        return _guards[context]


def _java_list(context: SparkContext, items: Sequence[Any]) -> Any:
    jvm: Any = context._jvm
    found = jvm.java.util.ArrayList()
    for item in items:
        found.add(item)
    return found


def _above_views(plan: str) -> Iterator[str]:
    """The lines of a plan's text without what is below a view, which this program has made."""
    view_depth: int | None = None
    for line in plan.splitlines():
        node = _NODE.match(line)
        depth = len(node["indent"]) if node else 0
        if view_depth is not None and depth > view_depth:
            continue
        view_depth = depth if node and node["name"] == "View" else None
        yield line


def refused(found: str) -> SqlError:
    """The error for a plan that does what `found` says."""
    call = _CALL.fullmatch(found)
    name = call[1].lower() if call else ""
    if name in TABLE_FUNCTIONS:
        text = f"table function '{name}' belongs in FROM; it has no value"
        return UnknownFunctionError(text, condition="NOT_A_SCALAR_FUNCTION")
    if name in _OF_UNITS:
        return UnknownFunctionError(f"the first argument of '{name}' is not a unit of time")
    return ForbiddenSqlError(
        f"Spark's plan of the query {found}; a query reads tables of the catalog and nothing else"
    )


def _refuse(found: str | None) -> None:
    if found is not None:
        raise refused(found)
