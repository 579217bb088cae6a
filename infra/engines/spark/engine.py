"""Spark SQL as an engine: it spreads a fragment over the executors by itself.

Driver code, by the DataFrame API alone. Local Parquet files are read by Spark; every other relation
is fed to it in pieces that tasks of its own read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagecoach.infra.engines.protocol import Fragment, Relation
from stagecoach.infra.engines.spark.carried import carried_frame
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
from stagecoach.infra.engines.spark.query import query_frame
from stagecoach.infra.errors import QueryError
from stagecoach.infra.functions.function_set import NO_FUNCTIONS, FunctionSet
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.infra.reading.spark_files import SparkFiles
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.text.quoting import spark_name
from stagecoach.planner.text.type_names import ddl_type
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from stagecoach.infra.reading.data_file import DataFile

_VERIFY_PAGES = "parquet.page.verify-checksum.enabled"


@dataclass(frozen=True)
class FedRelation:
    """Rows that Spark cannot read by itself.

    Args:
        columns: Columns of the rows.
        num_parts: How many pieces there are.
        read: Gives the rows of a piece by its number; it is pickled and runs on an executor.
    """

    columns: tuple[LeafColumn, ...]
    num_parts: int
    read: Callable[[int], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class SparkEngine:
    """Spark SQL in a session.

    Args:
        session: A session of the caller's own: its temporary views are replaced.
        parameters: Values of the parameter markers in the SQL.
        functions: Functions of the project that the SQL calls.
        verify_pages: Whether Spark compares pages of Parquet files with their checksums.
    """

    session: SparkSession
    parameters: Mapping[str, Literal]
    verify_pages: bool = True
    functions: FunctionSet = NO_FUNCTIONS

    def run(self, fragment: Fragment) -> DataFrame:
        """The rows of a fragment; each partition is a stream of record batches on an executor.

        Nothing runs before the frame is asked for rows.

        Raises:
            ForbiddenSqlError: The SQL does more than read the relations.
            QueryError: Spark gives other columns than the schema has.
            PySparkException: Spark refuses the SQL; see `explain_error`.
        """
        for name, relation in fragment.relations.items():
            self._frame(relation).createOrReplaceTempView(spark_name(name))
        text = SparkText(fragment.sql)
        frame = query_frame(self.session, text, self.parameters, self.functions)
        names = fragment.schema.names
        if len(frame.columns) != len(names):
            raise QueryError(f"Spark gives {len(frame.columns)} columns, the plan has {len(names)}")
        return carried_frame(frame).toDF(*names)

    def _frame(self, relation: Relation) -> DataFrame:
        fields = tuple(Field(c.name, c.dtype) for c in relation.columns)
        if isinstance(relation, ParquetInput):
            if not relation.files:
                return _empty_frame(self.session, fields)
            return _parquet_frame(self.session, relation, verify_pages=self.verify_pages)
        if isinstance(relation, SparkFiles):
            if not relation.files:
                return _empty_frame(self.session, fields)
            return _files_frame(self.session, relation)
        if not isinstance(relation, FedRelation):
            raise QueryError(f"Spark cannot read a {type(relation).__name__}")
        if not (parts := relation.num_parts):
            return _empty_frame(self.session, fields)
        pieces = self.session.range(0, parts, 1, parts)
        return pieces.mapInArrow(_feeder(relation.read), _ddl(fields))


def _feeder(
    read: Callable[[int], Iterator[pa.RecordBatch]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def feed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from read(index)

    return feed


def analyze(
    spark: SparkSession,
    query: str,
    text: SparkText,
    tables: Sequence[tuple[str, tuple[Field, ...]]],
    parameters: Mapping[str, Literal],
    functions: Sequence[ProjectFunction] = (),
) -> list[tuple[str, str]]:
    """Names and types (as Spark prints them) of a query's columns, by Spark's own analysis.

    Args:
        spark: A session of the caller's own: its temporary views are replaced.
        query: Name of the query.
        text: The query.
        tables: Tables and their columns; no data is read.
        parameters: Values of the parameter markers.
        functions: Functions of the project that it calls; their code is not looked at.

    Raises:
        ForbiddenSqlError: The query does more than read the tables.
        QueryFailedError: Spark refuses the query.
        TaskFailedError: Spark itself failed.
    """
    try:
        for name, fields in tables:
            _empty_frame(spark, fields).createOrReplaceTempView(spark_name(name))
        schema = query_frame(spark, text, parameters, FunctionSet(tuple(functions))).schema
    except SPARK_ERRORS as error:
        raise explain_error(error, query, query) from error
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _parquet_frame(spark: SparkSession, leaf: ParquetInput, *, verify_pages: bool) -> DataFrame:
    stored = tuple(Field(c.source, c.dtype) for c in leaf.columns)
    paths = [_escape_glob(f.local_path or "") for f in leaf.files]
    # Spark's own check, by the checksums of pages, is off by default.
    reader = spark.read.schema(_ddl(stored)).option(_VERIFY_PAGES, str(verify_pages).lower())
    frame = _with_folders(reader, leaf.files[0]).parquet(*paths)
    return _renamed(frame, leaf.columns)


def _files_frame(spark: SparkSession, leaf: SparkFiles) -> DataFrame:
    reader = spark.read.schema(_ddl(leaf.fields)).options(**dict(leaf.options))
    reader = _with_folders(reader.format(leaf.reader), leaf.files[0])
    frame = reader.load([_escape_glob(f.local_path or "") for f in leaf.files])
    return _renamed(frame, leaf.columns)


def inferred_columns(spark: SparkSession, files: SparkFiles) -> list[tuple[str, str]]:
    """Return the columns that Spark finds in files: names, and types as Spark prints them.

    Args:
        spark: A session.
        files: Local files, and how Spark reads them; of their columns nothing is known.

    Raises:
        PySparkException: Spark cannot read them.
    """
    reader = spark.read.options(**dict(files.options)).format(files.reader)
    frame = _with_folders(reader, files.files[0]).load(
        [_escape_glob(f.local_path or "") for f in files.files]
    )
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def _with_folders(reader: DataFrameReader, first: DataFile) -> DataFrameReader:
    """The reader, which finds partition columns in the names of the folders below the table's."""
    if not first.constants:
        return reader
    root = first.local_path or ""
    for _ in range(len(first.constants) + 1):
        root = os.path.dirname(root)
    return reader.option("basePath", root)


def _renamed(frame: DataFrame, columns: Sequence[LeafColumn]) -> DataFrame:
    return frame.select(*(frame[spark_name(c.source)].alias(c.name) for c in columns))


def _empty_frame(spark: SparkSession, fields: tuple[Field, ...]) -> DataFrame:
    return spark.createDataFrame([], _ddl(fields))


def _ddl(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{spark_name(f.name)} {ddl_type(f.dtype)}" for f in fields)


def _escape_glob(path: str) -> str:
    return "".join(f"\\{c}" if c in "{}[]*?\\" else c for c in path)
