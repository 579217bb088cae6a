"""The worker's functions in databases that tests open themselves."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stagecoach.infra.engines.duckdb.decimal_functions import DecimalFunctions
from stagecoach.infra.engines.duckdb.java_functions import JavaFunctions

if TYPE_CHECKING:
    import duckdb

# They hold the connections, so none gets the number of another one.
_functions_of = tuple(functools.cache(kind) for kind in (DecimalFunctions, JavaFunctions))


def declared(database: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The SQL, once the database knows the decimal and Java functions that it calls."""
    for functions in _functions_of:
        functions(database).declare(sql)
    return sql
