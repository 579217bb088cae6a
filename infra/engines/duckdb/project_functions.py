"""Declare the project's functions that a fragment calls in DuckDB.

Worker code. A function has a name of its own for each version of its code, because a database lives
longer than a query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import TYPE_CHECKING

import pyarrow as pa  # noqa: TC002 - DuckDB evaluates the annotations of a function
from duckdb.func import ARROW, SPECIAL

from stagecoach.infra.functions.calling import Code, call_function
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.functions.loading import load_function
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.text.type_names import duckdb_type

if TYPE_CHECKING:
    import duckdb


class ProjectFunctions:
    """The project's functions of one database.

    Args:
        connection: Where they are declared; it must stay open as long as the database is used.
        time_zone: Session time zone, an IANA name.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, time_zone: str) -> None:
        self._connection = connection
        self._time_zone = time_zone
        self._declared: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def declare(self, functions: FunctionSet) -> None:
        """Make the functions known to all cursors of the database.

        Raises:
            FunctionError: The code of one of them cannot be used here.
        """
        with self._lock:
            for function in functions.functions:
                name = function.unique_name
                code = load_function(function, functions.path)
                if self._declared.get(name) == functions.path:
                    continue
                if name in self._declared:  # the same declaration, in another folder
                    self._connection.remove_function(name)
                self._connection.create_function(
                    name,
                    _over_columns(function, code, self._time_zone),
                    [duckdb_type(dtype) for dtype in function.arguments],
                    duckdb_type(function.returns),
                    type=ARROW,
                    null_handling=SPECIAL,
                )
                self._declared[name] = functions.path


def _over_columns(function: ProjectFunction, code: Code, time_zone: str) -> Callable[..., pa.Array]:
    def over_columns(*columns: pa.ChunkedArray) -> pa.Array:
        return call_function(function, code, _combined(columns), time_zone)

    # DuckDB counts the parameters.
    names = (f"a{i}" for i in range(len(function.arguments)))
    over_columns.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return over_columns


def _combined(columns: Sequence[pa.ChunkedArray]) -> list[pa.Array]:
    return [column.combine_chunks() for column in columns]
