"""Cursors: they run a query and fetch its rows, which are read while they are fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Self

from stagecoach.api.cancelling import Cancellation
from stagecoach.dbapi.exceptions import (
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    told_as_pep_249,
)
from stagecoach.dbapi.types import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.api.result import Result
    from stagecoach.api.session import Session
    from stagecoach.planner.types import Field

Row = tuple[Any, ...]
Column = tuple[str, str, None, None, int | None, int | None, None]
"""Name, Spark type, display and internal size, precision, scale, whether it may be NULL."""


class Cursor:
    """A cursor of PEP 249; `Connection.cursor` makes it.

    Attributes:
        arraysize: How many rows `fetchmany` fetches by default.
        description: The columns of the last query: name, type code (the Spark type), two times
            None, precision and scale of decimals, None. None before a query has run.
        rowcount: Rows of the last query's result; -1 before a query has run.
    """

    def __init__(self, connection: object, session: Session) -> None:
        self._connection = connection
        self._session = session
        self._is_closed = False
        self._running: Cancellation | None = None
        self._result: Result | None = None
        self._rows: Iterator[Row] = iter(())
        self.arraysize = 1
        self.description: tuple[Column, ...] | None = None
        self.rowcount = -1

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def connection(self) -> object:
        """The connection that has made it."""
        return self._connection

    def execute(
        self, operation: str, parameters: Mapping[str, Value] | Sequence[Value] | None = None
    ) -> Self:
        """Run a query and return this cursor.

        Args:
            operation: One SELECT, or EXPLAIN of one.
            parameters: A mapping for `:name`, a sequence for `?`. Texts are bound as texts.

        Raises:
            Error: As PEP 249 says.
        """
        self._check_open()
        self._forget()
        values = _named(parameters)
        running = self._running = Cancellation()
        try:
            with told_as_pep_249():
                result: Result | None = self._session.explained(operation, values)
                if result is None:
                    planned = self._session.plan(operation, values)
                    self._session.check_storage()
                    result = self._session.run(planned, cancellation=running)
                self.rowcount = result.num_rows
                self.description = tuple(_described(column) for column in result.columns)
        finally:
            running.end()
            self._running = None
        self._result, self._rows = result, iter(result)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Any]) -> NoReturn:
        """Refuse: PEP 249 has it for statements without rows, and queries have rows.

        Raises:
            NotSupportedError: Always.
        """
        raise NotSupportedError("a query is executed once for each set of parameters; use execute")

    def fetchone(self) -> Row | None:
        """Return the next row, or None after the last.

        Raises:
            ProgrammingError: No query has run.
        """
        self._require_result()
        with told_as_pep_249():
            return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next rows; fewer or none at the end.

        Args:
            size: How many; `arraysize` by default.

        Raises:
            ProgrammingError: No query has run.
        """
        self._require_result()
        with told_as_pep_249():
            return list(islice(self._rows, self.arraysize if size is None else size))

    def fetchall(self) -> list[Row]:
        """Return all rows that are left.

        Raises:
            ProgrammingError: No query has run.
        """
        self._require_result()
        with told_as_pep_249():
            return list(self._rows)

    def fetch_arrow_table(self) -> pa.Table:
        """Return all rows as an Arrow table, whatever was fetched before; not part of PEP 249.

        Raises:
            ProgrammingError: No query has run.
        """
        with told_as_pep_249():
            return self._require_result().to_arrow()

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """Return a reader of all rows, whatever was fetched before; not part of PEP 249.

        Raises:
            ProgrammingError: No query has run.
        """
        with told_as_pep_249():
            return self._require_result().to_reader()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        if (row := self.fetchone()) is None:
            raise StopIteration
        return row

    def cancel(self) -> None:
        """Cancel the query that another thread executes here; it raises OperationalError."""
        if (running := self._running) is not None:
            running.cancel()

    def close(self) -> None:
        """Let go of the result; the cursor cannot be used any more."""
        self._forget()
        self._is_closed = True

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def _forget(self) -> None:
        self._result, self._rows = None, iter(())
        self.description, self.rowcount = None, -1

    def _check_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed; make another one")

    def _require_result(self) -> Result:
        self._check_open()
        if self._result is None:
            raise ProgrammingError("there are no rows: execute a query first")
        return self._result


def _named(parameters: Mapping[str, Value] | Sequence[Value] | None) -> dict[str, Value]:
    """Values by name; those of `?` have their numbers, from 1, for names."""
    if parameters is None:
        return {}
    if isinstance(parameters, str | bytes):
        raise ProgrammingError("parameters are a mapping or a sequence, not a text")
    if not isinstance(parameters, Mapping):
        parameters = {str(number): value for number, value in enumerate(parameters, 1)}
    return {name: _bound(value) for name, value in parameters.items()}


def _bound(value: Value) -> Value:
    """A value as sessions take it: to them `"5"` is a number, here it is a text."""
    if not isinstance(value, str):
        return value
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _described(column: Field) -> Column:
    dtype = column.dtype
    sizes = (dtype.precision, dtype.scale) if dtype.is_decimal else (None, None)
    return (column.name, str(dtype), None, None, *sizes, None)
