"""A task engine in a few lines: SQLite, for whole numbers and text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment, Relation, Resources
from stagecoach.infra.errors import QueryError
from stagecoach.infra.reading.inputs import ArrowInput, ParquetInput
from stagecoach.infra.reading.parquet import read_parquet_batches

_BATCH_ROWS = 100


class SqliteEngine:
    """Runs a fragment in a database in memory."""

    @contextmanager
    def run(self, fragment: Fragment, resources: Resources) -> Iterator[Iterator[pa.RecordBatch]]:
        """Run a fragment; see `stagecoach.infra.engines.protocol.TaskEngine`."""
        with closing(sqlite3.connect(":memory:")) as database:
            for name, relation in fragment.relations.items():
                columns = [column.name for column in relation.columns]
                database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
                insert = f"INSERT INTO {name} VALUES ({', '.join('?' for _ in columns)})"
                for batch in _batches(relation):
                    database.executemany(insert, zip(*batch.to_pydict().values(), strict=True))
            with _refusals():
                rows = database.execute(fragment.sql)
            yield _as_batches(rows, fragment.schema)


@contextmanager
def _refusals() -> Iterator[None]:
    """Errors of SQLite are what the driver lets Spark answer."""
    try:
        yield
    except sqlite3.Error as error:
        raise QueryError(f"SQLite: {error}") from error


def _batches(relation: Relation) -> Iterator[pa.RecordBatch]:
    if isinstance(relation, ArrowInput):
        return relation.batches()
    if isinstance(relation, ParquetInput):
        return read_parquet_batches(relation)
    raise QueryError(f"SQLite cannot read a {type(relation).__name__}")


def _as_batches(rows: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while found := _fetched(rows):
        columns = zip(*found, strict=True)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fetched(rows: sqlite3.Cursor) -> list[tuple[object, ...]]:
    with _refusals():
        return rows.fetchmany(_BATCH_ROWS)
