"""The worker's functions in databases that tests open themselves."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stagecoach.infra.engines.duckdb.decimal_functions import DecimalFunctions

if TYPE_CHECKING:
    import duckdb

# It holds the connections, so none gets the number of another one.
_functions_of = functools.cache(DecimalFunctions)


def declared(database: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The SQL, once the database knows the decimal functions that it calls."""
    _functions_of(database).declare(sql)
    return sql
