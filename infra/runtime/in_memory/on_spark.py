"""Runs stages and whole queries over tables in memory on Spark, and brings their rows back.

Driver code, by the DataFrame API alone, so that Spark Connect works as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from stagecoach.infra.errors import QueryError, QueryFailedError
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.runtime.planning.bloom_steps import bloom_step
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.engines.spark.dialect import marker_values
from stagecoach.planner.errors import SqlError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.syntax.parse import spark_text
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.text.quoting import spark_name
from stagecoach.planner.text.type_names import ddl_type
from stagecoach.planner.types import Field, parse_result_type, to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Columns = Sequence[Field]


@dataclass(frozen=True, kw_only=True)
class MemorySpark:
    """A Spark that queries over tables in memory run on.

    Args:
        session: Gives the session; it is called when Spark is first needed.
        time_zone: Session time zone, an IANA name.
        code_path: Folders in which the project's functions are.
    """

    session: Callable[[], SparkSession]
    time_zone: str
    code_path: tuple[str, ...] = ()

    def stage(
        self,
        graph: StageGraph,
        stage: Stage,
        inputs: Mapping[str, tuple[Columns, pa.Table]],
        values: Mapping[str, Literal],
    ) -> pa.Table:
        """The rows of a stage, columns `c0`, `c1`, ….

        Args:
            graph: The query, for messages.
            stage: The stage.
            inputs: Its inputs by name, `in_0`, `in_1`, …, columns with the names of the fragment.
            values: A value for every parameter.

        Raises:
            QueryFailedError: Spark refuses it or raises on its rows.
        """
        name = f"{graph.query}/stage_{stage.stage_id}"
        types = tuple(f.dtype for f in stage.schema)
        step = bloom_step(stage)
        built = None if step is None or step.kind == "probe" else step
        with self._translated(graph.query, name):
            text = SparkText(render_fragment(stage, SPARK, values))
            _, rows = self._rows(text, inputs, marker_values(values), stage.functions)
            if built is None:
                return rows.rename_columns(output_schema(types).names).cast(output_schema(types))
            given = rows.rename_columns((built.schema or output_schema(types)).names)
            given = given.cast(built.schema or output_schema(types))
            return pa.Table.from_batches(built.apply(given.to_batches()), output_schema(types))

    def query(
        self,
        graph: StageGraph,
        tables: Mapping[str, tuple[Columns, pa.Table]],
        values: Mapping[str, Literal],
    ) -> tuple[tuple[Field, ...], pa.Table]:
        """Columns and rows of the text of a query, by plain Spark SQL.

        Args:
            graph: The query.
            tables: Columns and rows by name of the table.
            values: A value for every parameter.

        Raises:
            QueryFailedError: Spark refuses it or raises on its rows.
            ForbiddenSqlError: The query does more than read the tables.
        """
        given = {name: value for name, value in values.items() if not name.startswith("@")}
        with self._translated(graph.query, graph.query):
            return self._rows(spark_text(graph.sql), tables, given, graph.functions)

    def _rows(
        self,
        text: SparkText,
        tables: Mapping[str, tuple[Columns, pa.Table]],
        values: Mapping[str, Literal],
        functions: tuple[ProjectFunction, ...],
    ) -> tuple[tuple[Field, ...], pa.Table]:
        from stagecoach.infra.engines.spark.carried import carried_frame
        from stagecoach.infra.engines.spark.query import query_frame
        from stagecoach.infra.spark.session import isolated_session

        with isolated_session(self.session(), self.time_zone) as spark:
            for name, (columns, rows) in tables.items():
                _frame(spark, columns, rows).createOrReplaceTempView(spark_name(name))
            called = FunctionSet(functions, self.code_path if functions else ())
            frame = query_frame(spark, text, values, called)
            fields = tuple(
                Field(f.name, parse_result_type(f.dataType.simpleString()))
                for f in frame.schema.fields
            )
            carried = carried_frame(frame).toDF(*(f"c{i}" for i in range(len(fields))))
            return fields, carried.toArrow()

    @contextmanager
    def _translated(self, query: str, name: str) -> Iterator[None]:
        """Turn Spark's errors into ours."""
        from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error

        try:
            yield
        except SPARK_ERRORS as error:
            raise explain_error(error, query, name) from error
        except QueryError as error:
            raise QueryFailedError(query, type(error).__name__, str(error)) from error
        except SqlError:
            raise
        except pa.ArrowException as error:
            first = str(error).splitlines()[0]
            raise QueryFailedError(query, "ARROW", f"{name}: {first}") from error


def _frame(spark: SparkSession, columns: Columns, rows: pa.Table) -> DataFrame:
    """Rows as a DataFrame, with exactly these types."""
    ddl = ", ".join(f"{spark_name(f.name)} {ddl_type(f.dtype)}" for f in columns)
    if not columns:
        return spark.range(0, rows.num_rows, 1, 1).selectExpr("TRUE AS no_column")
    schema = pa.schema([pa.field(f.name, to_arrow(f.dtype)) for f in columns])
    # One chunk: createDataFrame loses rows of tables with many small ones.
    table = rows.rename_columns(schema.names).cast(schema).combine_chunks()
    if not table.num_rows:
        return spark.createDataFrame([], ddl)
    return spark.createDataFrame(table, ddl)
