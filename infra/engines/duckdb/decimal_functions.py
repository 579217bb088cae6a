"""Declare the decimal functions that a query names in DuckDB.

Worker code. `stagecoach.planner.text.decimal_calls` says what a name means and
`stagecoach.infra.engines.duckdb.decimals` computes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa  # noqa: TC002 - DuckDB evaluates the annotations of a function
from duckdb.func import ARROW, SPECIAL

from stagecoach.infra.engines.duckdb.decimals import compute
from stagecoach.planner.text.decimal_calls import DecimalFunction, decimal_functions
from stagecoach.planner.text.type_names import duckdb_type

if TYPE_CHECKING:
    import duckdb


class DecimalFunctions:
    """The decimal functions of one database.

    Args:
        connection: Where they are declared. It must stay open as long as the database is used: a
            function of a closed cursor crashes the process.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._declared: set[DecimalFunction] = set()
        self._lock = threading.Lock()

    def declare(self, sql: str) -> None:
        """Make the functions of the SQL known to all cursors of the database."""
        with self._lock:
            for function in decimal_functions(sql) - self._declared:
                self._connection.create_function(
                    function.name,
                    _of_one(function) if len(function.arguments) == 1 else _of_two(function),
                    [duckdb_type(dtype) for dtype in function.arguments],
                    duckdb_type(function.result),
                    type=ARROW,
                    null_handling=SPECIAL,
                )
                self._declared.add(function)


# DuckDB counts the parameters, so there is one wrapper for each number of them.


def _of_one(function: DecimalFunction) -> Callable[[pa.ChunkedArray], pa.Array]:
    def over_column(column: pa.ChunkedArray) -> pa.Array:
        return compute(function, (column,))

    return over_column


def _of_two(
    function: DecimalFunction,
) -> Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.Array]:
    def over_columns(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.Array:
        return compute(function, (first, second))

    return over_columns
