"""Functions that DuckDB calls for what only Java computes the same way, such as `java_exp`.

Worker code. `planner/functions/spell_*.py` write their names. Mathematics are of `java_math` and
`java_angles`; a NULL argument gives NULL. Hashes are of `java_hashes`; a NULL gives the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import ARROW, SPECIAL

from stagecoach.infra.engines.duckdb import (
    hyperloglog,
    java_angles,
    java_bytes,
    java_formats,
    java_math,
    java_texts,
)
from stagecoach.infra.engines.duckdb.java_hashes import COLUMN_HASHES
from stagecoach.infra.engines.duckdb.java_math import Doubles

if TYPE_CHECKING:
    import duckdb

FUNCTIONS: Mapping[str, tuple[Callable[..., Doubles], int]] = MappingProxyType(
    {
        "java_exp": (java_math.exp, 1),
        "java_expm1": (java_math.expm1, 1),
        "java_log": (java_math.log, 1),
        "java_log10": (java_math.log10, 1),
        "java_log1p": (java_math.log1p, 1),
        "java_pow": (java_math.power, 2),
        "java_cbrt": (java_math.cbrt, 1),
        "java_hypot": (java_math.hypot, 2),
        "java_asin": (java_angles.asin, 1),
        "java_acos": (java_angles.acos, 1),
        "java_atan": (java_angles.atan, 1),
        "java_atan2": (java_angles.atan2, 2),
        "java_sinh": (java_angles.sinh, 1),
        "java_cosh": (java_angles.cosh, 1),
        "java_tanh": (java_angles.tanh, 1),
        "java_asinh": (java_angles.asinh, 1),
        "java_acosh": (java_angles.acosh, 1),
        "java_atanh": (java_angles.atanh, 1),
    }
)
"""What computes each function of DuckDB, and its number of arguments."""


def register_java_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the functions known to all cursors of the connection's database."""
    for name, (function, arity) in FUNCTIONS.items():
        over_columns = _of_one(function) if arity == 1 else _of_two(function)
        connection.create_function(name, over_columns, ["DOUBLE"] * arity, "DOUBLE", type=ARROW)
    for bits in (224, 384, 512):
        connection.create_function(
            f"java_sha{bits}", java_bytes.digest(f"sha{bits}"), ["BLOB"], "VARCHAR", type=ARROW
        )
    connection.create_function("java_float_text", _shortest, ["FLOAT"], "VARCHAR", type=ARROW)
    connection.create_function(
        "java_decimal_bytes", _unscaled_bytes, ["VARCHAR"], "BLOB", type=ARROW
    )
    connection.create_function(
        "java_to_base32", java_bytes.to_base32, ["BLOB"], "VARCHAR", type=ARROW
    )
    connection.create_function(
        "java_from_base32",
        java_bytes.from_base32,
        ["VARCHAR"],
        "BLOB",
        type=ARROW,
        null_handling=SPECIAL,
    )
    connection.create_function(
        "java_similarity",
        java_texts.similarities,
        ["VARCHAR", "VARCHAR"],
        "DOUBLE",
        type=ARROW,
    )
    connection.create_function(
        "java_hmac",
        java_texts.authentication_codes,
        ["BLOB", "BLOB", "VARCHAR"],
        "BLOB",
        type=ARROW,
    )
    connection.create_function(
        "java_bitmap_of", java_bytes.bitmap_of, ["BIGINT[]"], "BLOB", type=ARROW
    )
    connection.create_function(
        "java_hll_code", hyperloglog.codes, ["BIGINT", "INTEGER"], "INTEGER", type=ARROW
    )
    connection.create_function(
        "java_hll_estimate", hyperloglog.estimates, ["INTEGER[]", "INTEGER"], "BIGINT", type=ARROW
    )
    connection.create_function(
        "java_to_char", java_formats.number_texts, ["VARCHAR", "VARCHAR"], "VARCHAR", type=ARROW
    )
    for name, (fold, kind, seed) in COLUMN_HASHES.items():
        connection.create_function(
            name, fold, [kind, seed], seed, type=ARROW, null_handling=SPECIAL
        )


def _shortest(column: pa.ChunkedArray) -> pa.Array:
    """The fewest digits that tell a float from its neighbours; DuckDB writes up to nine."""
    text = pc.cast(column.combine_chunks(), pa.string())
    return pc.if_else(
        pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, ".0", "")
    )


def _unscaled_bytes(column: pa.ChunkedArray) -> pa.Array:
    """The digits of decimals, without their points, as Java's `BigInteger` writes its bytes."""
    return pa.array([_big_endian(text) for text in column.to_pylist()], pa.binary())


def _big_endian(text: str | None) -> bytes | None:
    if text is None:
        return None
    number = int(text.replace(".", ""))
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


# DuckDB counts the parameters, so there is one wrapper for each number of them. All branches of
# fdlibm are computed, so numbers overflow that nobody asked for.


def _of_one(function: Callable[..., Doubles]) -> Callable[[pa.ChunkedArray], pa.Array]:
    def over_column(column: pa.ChunkedArray) -> pa.Array:
        with np.errstate(all="ignore"):
            return pa.array(function(column.to_numpy()))

    return over_column


def _of_two(
    function: Callable[..., Doubles],
) -> Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.Array]:
    def over_columns(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.Array:
        with np.errstate(all="ignore"):
            return pa.array(function(first.to_numpy(), second.to_numpy()))

    return over_columns
