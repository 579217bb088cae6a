"""Spark's SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.engines.aggregates import filled
from stagecoach.planner.engines.dialect import Alias, Dialect, Scalar
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Literal,
    Parameter,
    ProjectCall,
    WindowCall,
)
from stagecoach.planner.plan.given_parameters import RUN_BOUND_PREFIX
from stagecoach.planner.plan.operators import JoinKind
from stagecoach.planner.plan.physical import GenerateExec
from stagecoach.planner.text.quoting import spark_name, spark_text
from stagecoach.planner.text.type_names import interval_text, spark_type
from stagecoach.planner.types import DataType
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS


def marker_values(parameters: Mapping[str, Literal]) -> dict[str, Literal]:
    """The values of the markers in a fragment that is rendered for Spark, by the markers' names."""
    return {_marker(name): value for name, value in parameters.items() if _is_given(name)}


def _is_given(name: str) -> bool:
    """Whether somebody gives the parameter's value; else it is the run's own clock."""
    return not name.startswith(RUN_BOUND_PREFIX)


def _marker(name: str) -> str:
    """The name of a marker; Spark takes no digits alone, as those of `?` are."""
    return f"p_{name}"


class SparkDialect(Dialect):
    """How Spark writes SQL."""

    null_safe_equal = "<=>"

    def type_name(self, dtype: DataType) -> str:
        """Spark's name of a type."""
        return spark_type(dtype)

    def text(self, value: str) -> str:
        """A text literal."""
        return spark_text(value)

    def literal(self, node: Literal) -> str:
        """A constant, with its type."""
        if node.dtype.is_interval and node.value is not None:
            return interval_text(node.dtype, int(node.value))
        return super().literal(node)

    def parameter(self, node: Parameter, value: Literal) -> str:
        """A marker, whose value goes beside the text; the run's clock is a constant."""
        if _is_given(node.name):
            return f"CAST(:{_marker(node.name)} AS {spark_type(node.dtype)})"
        return self.literal(value)

    def function(self, node: Call) -> str:
        """The template of a call."""
        spelling = REGISTRY[node.function].spark
        return spelling if isinstance(spelling, str) else spelling(node)

    def project_function(self, node: ProjectCall, scalar: Scalar) -> str:
        """A call by the declared name, which a session knows."""
        return f"{spark_name(node.function.name)}({', '.join(map(scalar, node.args))})"

    def lambda_function(self, names: Sequence[str], body: str) -> str:
        """A function of these parameters."""
        listed = ", ".join(names)
        return f"({listed}) -> {body}" if len(names) > 1 else f"{listed} -> {body}"

    def aggregate(self, node: AggregateCall, scalar: Scalar) -> str:
        """An aggregate call, cast to its type."""
        template = AGGREGATES[node.function].spark_template(node)
        if template is None:
            template = "{name}({distinct}{args}){filter}"
        return filled(template, node, spark_type(node.dtype), scalar)

    def join(self, kind: JoinKind) -> str:
        """The words between the sides of a join."""
        return {"semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}.get(kind) or super().join(kind)

    def values(self, rows: str, alias: str, columns: str) -> str:
        """Written rows; Spark takes no parentheses around them."""
        return f"VALUES {rows} AS {alias}({columns})"

    def numbers(self, bounds: str, column: str) -> str:
        """A SELECT of whole numbers."""
        return f"SELECT id AS {column} FROM range({bounds})"

    def generate(self, node: GenerateExec, child: str, scalar: Scalar, alias: Alias) -> str:
        """Each row of the child with each row that the generator makes of it."""
        outer = "OUTER " if node.outer else ""
        names = ", ".join(f"c{c.id}" for c in node.outputs)
        text = f"{_generator(node.generator, scalar)} {alias()} AS {names}"
        # A subquery of its own: LATERAL VIEW binds the whole FROM before it.
        return f"(SELECT * FROM {child} LATERAL VIEW {outer}{text}) AS {alias()}"

    def window_call(self, call: WindowCall, scalar: Scalar, over: str) -> str:
        """A window call, whose window is the text `over`."""
        args = ", ".join(scalar(a) for a in call.args)
        if call.function not in WINDOW_FUNCTIONS:
            args = args or "*"
        distinct = "DISTINCT " if call.distinct else ""
        condition = f" FILTER (WHERE {scalar(call.where)})" if call.where is not None else ""
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        return f"{call.function}({distinct}{args}){condition}{nulls} {over}"

    def distance(self, offset: Literal, key: DataType | None) -> str:
        """The bound of a frame."""
        if offset.dtype.is_interval:
            return _interval(offset)
        if offset.dtype.kind in ("int", "bigint"):
            return f"{offset.value}{'L' if offset.dtype.kind == 'bigint' else ''}"
        return super().distance(offset, key)


def _generator(call: Call, scalar: Scalar) -> str:
    args = ", ".join(scalar(a) for a in call.args)
    if call.function == "repeat_row":
        return f"explode(sequence(CAST(1 AS BIGINT), {args}))"
    return f"{call.function}({args})"


def _interval(offset: Literal) -> str:
    amount = int(offset.value or 0)
    if offset.dtype.is_year_month:
        return f"INTERVAL '{amount}' MONTH"
    seconds, fraction = divmod(amount, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    time = f"{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}"
    return f"INTERVAL '{days} {time}' DAY TO SECOND"
