"""Spark's own analysis decides about a query that the planner cannot stage.

Spark starts when it is first asked: a query that the planner stages, or that is certainly wrong,
starts none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagecoach.infra.engines.spark.message import clean_message, place_in
from stagecoach.infra.errors import QueryFailedError, TaskFailedError
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.literal_text import parse_literal
from stagecoach.planner.syntax.parse import spark_text
from stagecoach.planner.types import Field, parse_result_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.planner.plan.stages import ParameterSpec, StageGraph

# Analysis wants a value where a constant is needed, such as in LIMIT; any one of the type will do.
_SAMPLES = {
    "boolean": "true",
    "date": "2000-01-01",
    "timestamp": "2000-01-01 00:00:00",
    "timestamp_ntz": "2000-01-01 00:00:00",
}
_SAMPLE = "1"


@dataclass(frozen=True)
class SparkArbiter:
    """Asks a Spark session; an `Arbiter`.

    Args:
        session: Gives the session; it is called when Spark is first needed.
        values: Values of the query's parameters by name. A parameter without one is taken with its
            default, or with a sample of its type.
    """

    session: Callable[[], SparkSession]
    values: Mapping[str, Literal] = field(default_factory=dict)

    def check(self, graph: StageGraph) -> tuple[Field, ...] | None:
        """Return the columns of the result if Spark's analysis over empty tables accepts the text.

        None if one of them has a type that no file can hold.

        Raises:
            AnalysisError: Spark refuses it; the message is Spark's, with its error condition. Or
                Spark's analysis fails with an error that is not meant for users.
            ForbiddenSqlError: It does more than read the tables.
            TaskFailedError: Spark itself failed.
        """
        # pyspark takes half a second to import.
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import IllegalArgumentException, UnknownException

        from stagecoach.infra.engines.spark.engine import analyze
        from stagecoach.infra.spark.session import isolated_session

        values = {p.name: self._value(p, graph.time_zone) for p in graph.parameters}
        text = spark_text(graph.sql)
        with isolated_session(self.session(), graph.time_zone) as session:
            try:
                columns = analyze(session, graph.query, text, graph.tables, values, graph.functions)
            except QueryFailedError as error:
                line, column = place_in(error.text) or (None, None)
                message = clean_message(error.text)
                raise AnalysisError(
                    message, condition=error.condition, line=line, column=column
                ) from error
            except TaskFailedError as error:
                # What Spark raises without a condition: assertions of its own, for the most part.
                unforeseen = (Py4JJavaError, IllegalArgumentException, UnknownException)
                if not isinstance(error.__cause__, unforeseen):
                    raise
                raise AnalysisError(f"Spark cannot analyse the query: {error.problem}") from error
        try:
            return tuple(Field(name, parse_result_type(kind)) for name, kind in columns)
        except UnsupportedSqlError:
            return None  # the run says so, unless nobody reads the column

    def _value(self, spec: ParameterSpec, time_zone: str) -> Literal:
        if spec.name in self.values:
            return self.values[spec.name]
        text = spec.default or _SAMPLES.get(spec.dtype.kind, _SAMPLE)
        return parse_literal(text, spec.dtype, time_zone)
