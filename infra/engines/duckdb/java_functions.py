"""Functions that DuckDB calls for what only Java computes the same way, such as `java_exp`.

Worker code. `planner/functions/spell_*.py` write their names. Mathematics are of `java_math` and
`java_angles`; a NULL argument gives NULL. Hashes are of `java_hashes`; a NULL gives the seed.

A database gets the functions that its queries name: declaring all takes as long as a small query.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import ARROW, DEFAULT, SPECIAL

from stagecoach.infra.engines.duckdb import (
    hyperloglog,
    java_angles,
    java_bytes,
    java_dates,
    java_float_texts,
    java_formats,
    java_json,
    java_letters,
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
"""What computes each function of doubles, and its number of arguments."""

_NAME = re.compile(r"\bjava_\w+")


class JavaFunctions:
    """The functions of one database; it knows those that its queries have named so far.

    Args:
        connection: Where they are declared. It must stay open as long as the database is used.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._declared: set[str] = set()
        self._lock = threading.Lock()

    def declare(self, sql: str) -> None:
        """Make the functions of the SQL known to all cursors of the database."""
        with self._lock:
            for name in {*_NAME.findall(sql)} & _SIGNATURES.keys() - self._declared:
                known = _SIGNATURES[name]
                self._connection.create_function(
                    name,
                    known.function,
                    list(known.arguments),
                    known.result,
                    type=ARROW,
                    null_handling=SPECIAL if known.sees_null else DEFAULT,
                )
                self._declared.add(name)


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


class _Signature(NamedTuple):
    """A function over columns.

    Args:
        function: Computes a column from columns.
        arguments: DuckDB's types of these.
        result: DuckDB's type of the column.
        sees_null: Whether it computes rows with a NULL argument; the result is NULL otherwise.
    """

    function: Callable[..., pa.Array]
    arguments: tuple[str, ...]
    result: str
    sees_null: bool = False


_SIGNATURES: Mapping[str, _Signature] = MappingProxyType(
    {
        **{
            name: _Signature(
                _of_one(function) if arity == 1 else _of_two(function),
                ("DOUBLE",) * arity,
                "DOUBLE",
            )
            for name, (function, arity) in FUNCTIONS.items()
        },
        **{
            f"java_sha{bits}": _Signature(java_bytes.digest(f"sha{bits}"), ("BLOB",), "VARCHAR")
            for bits in (224, 384, 512)
        },
        **{
            name: _Signature(fold, (kind, seed), seed, sees_null=True)
            for name, (fold, kind, seed) in COLUMN_HASHES.items()
        },
        "java_float_text": _Signature(_shortest, ("FLOAT",), "VARCHAR"),
        "java_text_of_double": _Signature(
            java_float_texts.double_texts, ("DOUBLE", "BIGINT"), "VARCHAR", sees_null=True
        ),
        "java_text_of_float": _Signature(
            java_float_texts.float_texts, ("FLOAT", "BIGINT"), "VARCHAR", sees_null=True
        ),
        "java_date": _Signature(java_dates.dates, ("VARCHAR",), "DATE", sees_null=True),
        "java_local_time": _Signature(
            java_dates.local_times, ("VARCHAR",), "TIMESTAMP", sees_null=True
        ),
        "java_zoneless_time": _Signature(
            java_dates.zoneless_times, ("VARCHAR",), "TIMESTAMP", sees_null=True
        ),
        "java_instant": _Signature(
            java_dates.instants, ("VARCHAR",), "TIMESTAMP WITH TIME ZONE", sees_null=True
        ),
        "java_decimal_bytes": _Signature(_unscaled_bytes, ("VARCHAR",), "BLOB"),
        "java_to_base32": _Signature(java_bytes.to_base32, ("BLOB",), "VARCHAR"),
        "java_from_base32": _Signature(
            java_bytes.from_base32, ("VARCHAR",), "BLOB", sees_null=True
        ),
        "java_similarity": _Signature(java_texts.similarities, ("VARCHAR", "VARCHAR"), "DOUBLE"),
        "java_hmac": _Signature(
            java_texts.authentication_codes, ("BLOB", "BLOB", "VARCHAR"), "BLOB"
        ),
        "java_bitmap_of": _Signature(java_bytes.bitmap_of, ("BIGINT[]",), "BLOB"),
        "java_hll_code": _Signature(hyperloglog.codes, ("BIGINT", "INTEGER"), "INTEGER"),
        "java_hll_estimate": _Signature(hyperloglog.estimates, ("INTEGER[]", "INTEGER"), "BIGINT"),
        "java_upper": _Signature(java_letters.large, ("VARCHAR",), "VARCHAR"),
        "java_lower": _Signature(java_letters.small, ("VARCHAR",), "VARCHAR"),
        "java_initcap": _Signature(java_letters.titled, ("VARCHAR",), "VARCHAR"),
        "java_to_char": _Signature(java_formats.number_texts, ("VARCHAR", "VARCHAR"), "VARCHAR"),
        "java_get_json_object": _Signature(
            java_json.json_objects, ("VARCHAR", "VARCHAR", "BIGINT"), "VARCHAR", sees_null=True
        ),
        "java_json_tuple": _Signature(
            java_json.json_tuple_members,
            ("VARCHAR", "VARCHAR[]", "INTEGER", "BIGINT"),
            "VARCHAR",
            sees_null=True,
        ),
        "java_json_array_length": _Signature(
            java_json.json_array_lengths, ("VARCHAR",), "INTEGER", sees_null=True
        ),
        "java_json_object_keys": _Signature(
            java_json.json_object_names, ("VARCHAR",), "VARCHAR[]", sees_null=True
        ),
    }
)
