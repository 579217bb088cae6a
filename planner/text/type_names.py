"""The name of each Spark type in an engine's SQL. Executors import this module too."""

from __future__ import annotations

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.text.quoting import duckdb_name, spark_name
from stagecoach.planner.types import DataType

_DUCKDB_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "void": "INTEGER",
}


def interval_text(dtype: DataType, amount: int) -> str:
    """Spark's spelling of an interval.

    Args:
        dtype: A day-time or year-month interval type.
        amount: Microseconds or months.
    """
    sign, size = "-" if amount < 0 else "", abs(amount)
    if dtype.is_year_month:
        return f"CAST(INTERVAL '{sign}{size // 12}-{size % 12}' YEAR TO MONTH AS {dtype})"
    seconds, micros = divmod(size, 1_000_000)
    days, clock = divmod(seconds, 86_400)
    hours, minutes = clock // 3600, clock // 60 % 60
    text = f"{sign}{days} {hours:02}:{minutes:02}:{clock % 60:02}.{micros:06}"
    return f"CAST(INTERVAL '{text}' DAY TO SECOND AS {dtype})"


def spark_type(dtype: DataType) -> str:
    """Spark's name of a type."""
    inner = [spark_type(f.dtype) for f in dtype.fields]
    if dtype.kind == "struct":
        names = (spark_name(f.name) for f in dtype.fields)
        return f"struct<{', '.join(f'{n}: {t}' for n, t in zip(names, inner, strict=True))}>"
    return f"{dtype.kind}<{', '.join(inner)}>" if inner else str(dtype)


def duckdb_type(dtype: DataType) -> str:
    """DuckDB's name of a type.

    Raises:
        UnsupportedSqlError: It has no name for the type.
    """
    inner = [duckdb_type(f.dtype) for f in dtype.fields]
    match dtype.kind:
        case "decimal":
            return f"DECIMAL({dtype.precision},{dtype.scale})"
        case "array":
            return f"{inner[0]}[]"
        case "map":
            return f"MAP({', '.join(inner)})"
        case "struct":
            names = (duckdb_name(f.name) for f in dtype.fields)
            return f"STRUCT({', '.join(f'{n} {t}' for n, t in zip(names, inner, strict=True))})"
    if dtype.is_interval:
        # Spark's own form: microseconds or months. DuckDB's INTERVAL keeps days apart from hours.
        return "BIGINT" if dtype.is_day_time else "INTEGER"
    if dtype.kind not in _DUCKDB_TYPES:
        raise UnsupportedSqlError(f"DuckDB has no type for '{dtype}'")
    return _DUCKDB_TYPES[dtype.kind]


def ddl_type(dtype: DataType) -> str:
    """Spark's spelling of the type of a column in DDL, with the names of members quoted."""
    match dtype.kind:
        case "array":
            return f"array<{ddl_type(dtype.fields[0].dtype)}>"
        case "map":
            key, value = (ddl_type(field.dtype) for field in dtype.fields)
            return f"map<{key},{value}>"
        case "struct":
            members = (f"{spark_name(f.name)}:{ddl_type(f.dtype)}" for f in dtype.fields)
            return f"struct<{','.join(members)}>"
    return str(dtype)
