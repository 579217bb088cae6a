"""Spark's types as Flight SQL lists them, with their numbers of ODBC.

Source: `CommandGetXdbcTypeInfo` and `XdbcDataType` in `format/FlightSql.proto` of apache/arrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

_NULLABLE, _SEARCHABLE = 1, 3


@dataclass(frozen=True)
class _Type:
    """A row of the table.

    Args:
        name: Spark's name.
        number: Of ODBC.
        size: Digits, bits or characters; None where there is no limit.
        quote: What a literal begins with.
        scale: Most digits after the point.
        radix: Of `size`.
        general: The general number of ODBC, of dates and times.
        subcode: Which of these.
        parameters: What a declaration takes.
    """

    name: str
    number: int
    size: int | None = None
    quote: str | None = None
    scale: int | None = None
    radix: int | None = None
    general: int | None = None
    subcode: int | None = None
    parameters: tuple[str, ...] | None = None


_TYPES = (
    _Type("boolean", -7, 1),
    _Type("tinyint", -6, 3, scale=0, radix=10),
    _Type("bigint", -5, 19, scale=0, radix=10),
    _Type("binary", -3, quote="X'"),
    _Type("decimal", 3, 38, scale=38, radix=10, parameters=("precision", "scale")),
    _Type("int", 4, 10, scale=0, radix=10),
    _Type("smallint", 5, 5, scale=0, radix=10),
    _Type("float", 7, 24, radix=2),
    _Type("double", 8, 53, radix=2),
    _Type("string", 12, quote="'"),
    _Type("date", 91, 10, quote="DATE '", general=9, subcode=1),
    _Type("timestamp", 93, 26, quote="TIMESTAMP '", scale=6, general=9, subcode=3),
    _Type("timestamp_ntz", 93, 26, quote="TIMESTAMP_NTZ '", scale=6, general=9, subcode=3),
)


def _required(name: str, dtype: pa.DataType) -> pa.Field:
    return pa.field(name, dtype, nullable=False)


TYPE_INFO = pa.schema(
    [
        _required("type_name", pa.string()),
        _required("data_type", pa.int32()),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.string()),
        pa.field("literal_suffix", pa.string()),
        pa.field("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
        _required("nullable", pa.int32()),
        _required("case_sensitive", pa.bool_()),
        _required("searchable", pa.int32()),
        pa.field("unsigned_attribute", pa.bool_()),
        _required("fixed_prec_scale", pa.bool_()),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.string()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        _required("sql_data_type", pa.int32()),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)


def type_table(number: int | None = None) -> pa.Table:
    """Return the types as a table.

    Args:
        number: Those of this number of ODBC; None for all.
    """
    wanted = [_row(item) for item in _TYPES if number in (None, item.number)]
    return pa.Table.from_pylist(wanted, schema=TYPE_INFO)


def _row(item: _Type) -> dict[str, object]:
    is_number = item.radix is not None
    return {
        "type_name": item.name,
        "data_type": item.number,
        "column_size": item.size,
        "literal_prefix": item.quote,
        "literal_suffix": "'" if item.quote else None,
        "create_params": list(item.parameters) if item.parameters else None,
        "nullable": _NULLABLE,
        "case_sensitive": item.name == "string",
        "searchable": _SEARCHABLE,
        "unsigned_attribute": False if is_number else None,
        "fixed_prec_scale": False,
        "auto_increment": False if is_number else None,
        "local_type_name": item.name,
        "minimum_scale": None if item.scale is None else 0,
        "maximum_scale": item.scale,
        "sql_data_type": item.general or item.number,
        "datetime_subcode": item.subcode,
        "num_prec_radix": item.radix,
        "interval_precision": None,
    }
