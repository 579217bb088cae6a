"""What the server can do, as Flight SQL asks for it: numbers of properties and their values.

Source: `enum SqlInfo` in `format/FlightSql.proto` of apache/arrow.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping
from functools import cache

import pyarrow as pa

Value = str | bool | int | list[str] | dict[int, list[int]]

VALUE = pa.dense_union(
    [
        pa.field("string_value", pa.string()),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(pa.field("string_data", pa.string()))),
        pa.field(
            "int32_to_int32_list_map",
            pa.map_(pa.int32(), pa.field("value", pa.list_(pa.field("$data$", pa.int32())))),
        ),
    ]
)
SCHEMA = pa.schema([pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", VALUE)])
_TEXT, _TRUTH, _LONG, _MASK, _TEXTS, _NUMBERS = range(6)

_CASE_INSENSITIVE = 1
_NULLS_LOW = 1
_NO_TRANSACTIONS = 0
_ALL_JOINS = 1 << 2


@cache
def known_info() -> Mapping[int, tuple[int, Value]]:
    """Return the properties by number, each with the place of its type in the union."""
    return {
        0: (_TEXT, "Stagecoach"),
        1: (_TEXT, importlib.metadata.version("stagecoach")),
        2: (_TEXT, pa.__version__),
        3: (_TRUTH, True),  # read only
        4: (_TRUTH, True),  # SQL
        5: (_TRUTH, False),  # Substrait
        8: (_MASK, _NO_TRANSACTIONS),
        9: (_TRUTH, True),  # CancelQuery
        10: (_TRUTH, False),  # bulk ingestion
        11: (_TRUTH, False),
        100: (_MASK, 0),  # handles do not expire by time
        101: (_MASK, 0),
        500: (_TRUTH, False),  # CREATE of catalogs, schemas and tables
        501: (_TRUTH, False),
        502: (_TRUTH, False),
        503: (_LONG, _CASE_INSENSITIVE),
        504: (_TEXT, "`"),
        505: (_LONG, _CASE_INSENSITIVE),
        506: (_TRUTH, True),  # all tables can be read
        507: (_LONG, _NULLS_LOW),
        513: (_TEXT, "\\"),
        514: (_TEXT, ""),
        515: (_TRUTH, True),  # aliases of columns
        516: (_TRUTH, True),  # NULL || 'a' is NULL
        518: (_TRUTH, True),
        519: (_TRUTH, False),
        520: (_TRUTH, True),  # expressions in ORDER BY
        521: (_TRUTH, True),
        523: (_TRUTH, True),  # LIKE … ESCAPE
        524: (_TRUTH, False),
        528: (_MASK, _ALL_JOINS),
        529: (_TEXT, "schema"),
        531: (_TEXT, "catalog"),
        532: (_TRUTH, True),
        536: (_TRUTH, False),
        537: (_TRUTH, False),
        541: (_LONG, 0),  # no limit is known
        542: (_LONG, 0),
        563: (_TRUTH, False),
        574: (_TRUTH, True),  # :name
    }


def info_table(codes: Iterable[int] = ()) -> pa.Table:
    """Return properties as a table.

    Args:
        codes: Which; all by default. Unknown ones are left out.
    """
    known = known_info()
    wanted = [code for code in codes if code in known] or ([] if list(codes) else list(known))
    places = [known[code][0] for code in wanted]
    children: list[list[Value]] = [[] for _ in VALUE]
    offsets = []
    for code in wanted:
        place, value = known[code]
        offsets.append(len(children[place]))
        children[place].append(value)
    arrays = [pa.array(values, field.type) for values, field in zip(children, VALUE, strict=True)]
    union = pa.UnionArray.from_dense(
        pa.array(places, pa.int8()),
        pa.array(offsets, pa.int32()),
        arrays,
        [field.name for field in VALUE],
    )
    # The names of fields of nested types are part of the schema, and `from_dense` keeps them.
    names = pa.array(wanted, pa.uint32())
    return pa.Table.from_arrays([names, union], schema=SCHEMA)
