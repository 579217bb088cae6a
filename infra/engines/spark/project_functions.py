"""Register the project's functions in a Spark session.

Each is a scalar Arrow UDF, whatever its own kind: what Spark calls loads the function in the Python
worker and converts values there, with the code that runs below DuckDB, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.util import PythonEvalType

from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.spark.session_kinds import is_connect
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.text.type_names import ddl_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def register_functions(spark: SparkSession, functions: FunctionSet) -> list[Any]:
    """Make functions known to the SQL of a session; nothing of theirs is imported or run.

    Args:
        spark: A session of the caller's own, in whose time zone they see TIMESTAMPs.
        functions: What to register.

    Returns:
        What a classic Spark calls for each of them, Java objects; nothing for Spark Connect. A plan
        may call these and no other Python.
    """
    called = []
    time_zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    for function in functions.functions:
        code = _over_arrays(function.to_dict(), functions.path, time_zone)
        registered = spark.udf.register(function.name, _arrow_udf(spark, function, code))
        if not is_connect(spark):
            called.append(registered._judf.func())  # type: ignore[attr-defined]
    return called


def _arrow_udf(spark: SparkSession, function: ProjectFunction, code: Callable[..., Any]) -> Any:
    if is_connect(spark):
        from pyspark.sql.connect.udf import UserDefinedFunction as ConnectFunction

        kind: Any = ConnectFunction
    else:
        from pyspark.sql.udf import UserDefinedFunction

        kind = UserDefinedFunction
    return kind(
        code,
        ddl_type(function.returns),
        name=function.name,
        evalType=PythonEvalType.SQL_SCALAR_ARROW_UDF,
        deterministic=function.deterministic,
    )


def _over_arrays(
    payload: dict[str, Any], path: Sequence[str], time_zone: str
) -> Callable[..., pa.Array]:
    # A nested function is pickled by value: workers do not import this module.
    def over_arrays(*columns: pa.Array) -> pa.Array:
        from stagecoach.infra.errors import FunctionError
        from stagecoach.infra.functions.calling import call_function
        from stagecoach.infra.functions.errors import FunctionRaisedError, marked
        from stagecoach.infra.functions.loading import load_function
        from stagecoach.planner.project_function import ProjectFunction

        function = ProjectFunction.from_dict(payload)
        try:
            return call_function(function, load_function(function, path), columns, time_zone)
        except (FunctionError, FunctionRaisedError) as error:
            raise RuntimeError(marked(error)) from None

    return over_arrays
