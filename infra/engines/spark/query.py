"""The one way by which a SQL text reaches Spark.

Two walls stand before it, each enough alone. The text is made of tokens that are Spark's own
(`SparkText`), and the plans that Spark makes of it are walked before anything runs
(`stagecoach.infra.spark.guard`). Parameters are values beside the text, never a part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stagecoach.infra.engines.spark.project_functions import register_functions
from stagecoach.infra.functions.function_set import NO_FUNCTIONS, FunctionSet
from stagecoach.infra.spark.guard.plan_guard import check_analyzed, check_foreign, check_parsed
from stagecoach.infra.spark.safe_conf import is_guarded, substitutes_variables
from stagecoach.infra.spark.session_kinds import is_connect
from stagecoach.planner.errors import ForbiddenSqlError, ParameterError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.syntax.text import VARIABLE_MARK, SparkText

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def query_frame(
    spark: SparkSession,
    text: SparkText,
    parameters: Mapping[str, Literal],
    functions: FunctionSet = NO_FUNCTIONS,
) -> DataFrame:
    """The rows of a query, of which nothing has run yet.

    Args:
        spark: A session of the caller's own, with the views that the query reads.
        text: The query.
        parameters: Values of its parameter markers, by name; digits for `?` by position.
        functions: Functions of the project that it may call.

    Raises:
        ForbiddenSqlError: The query does more than read views, or Spark would replace `${…}` in it.
        PySparkException: Spark refuses it.
    """
    _refuse_variables(spark, text, parameters)
    is_remote = is_connect(spark)
    called = register_functions(spark, functions) if functions.functions else []
    if not is_remote:
        check_parsed(spark, text.text, [function.name for function in functions.functions])
    frame = _frame(spark, text.text, parameters)
    if not is_remote:
        check_analyzed(frame, called)
    elif not is_guarded(spark):
        if not text.is_parsed:
            raise ForbiddenSqlError(
                "only Spark's parser can read the query, and this Spark does not check what it "
                "runs; see the page on security in the user guide"
            )
        check_foreign(frame, text.text)
    return frame


def literal_column(spark: SparkSession, value: Literal) -> Column:
    """A parameter's value as a Spark literal of its type.

    Raises:
        ParameterError: The value does not fit its type.
    """
    sf = _functions(spark)
    raw, kind = value.value, value.dtype.kind
    if raw is None:
        return sf.lit(None)
    try:
        match kind:
            case "tinyint" | "smallint" | "int" | "bigint":
                suffix = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}[kind]
                return sf.expr(f"{int(raw)}{suffix}")
            case "decimal":
                return sf.expr(f"{Decimal(str(raw)):f}BD")
            case "float" if math.isfinite(float(raw)):
                return sf.expr(f"{float(raw)!r}F")
            case "float" | "double":
                return sf.lit(float(raw))
            case "date":
                return sf.lit(date.fromisoformat(str(raw)))
            case "timestamp":
                moment = datetime.fromisoformat(str(raw))
                return sf.expr(f"TIMESTAMP'{moment:%Y-%m-%d %H:%M:%S.%f}Z'")
            case "timestamp_ntz":
                moment = datetime.fromisoformat(str(raw))
                return sf.expr(f"TIMESTAMP_NTZ'{moment:%Y-%m-%d %H:%M:%S.%f}'")
    except (ValueError, ArithmeticError) as error:
        raise ParameterError(f"{raw!r} is not a valid {value.dtype}: {error}") from error
    return sf.lit(raw)


def _frame(spark: SparkSession, sql: str, parameters: Mapping[str, Literal]) -> DataFrame:
    values = {name: literal_column(spark, v) for name, v in parameters.items() if "@" not in name}
    if values and all(name.isdigit() for name in values):  # the `?` of the text, by position
        return spark.sql(sql, args=[values[name] for name in sorted(values, key=int)])
    return spark.sql(sql, args=values) if values else spark.sql(sql)


def _refuse_variables(
    spark: SparkSession, text: SparkText, parameters: Mapping[str, Literal]
) -> None:
    values = (v.value for v in parameters.values())
    in_values = any(isinstance(value, str) and VARIABLE_MARK in value for value in values)
    if (text.has_variables or in_values) and substitutes_variables(spark):
        raise ForbiddenSqlError(
            f"the query or a parameter has '{VARIABLE_MARK}', where this Spark would put a "
            "variable of its environment; turn spark.sql.variable.substitute off on the server"
        )


def _functions(spark: SparkSession) -> Any:
    if is_connect(spark):
        from pyspark.sql.connect import functions as connect_functions

        return connect_functions
    from pyspark.sql import functions

    return functions
