"""Columns of functions that are called with pandas Series, as by Spark's `pandas_udf`.

Worker code. A struct is a DataFrame, a TIMESTAMP the wall clock of the session's time zone. NaN in
a result is NULL, as it is to pandas.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.planner.types import DataType, to_arrow


def to_series(column: pa.Array, dtype: DataType, zone: ZoneInfo) -> pd.Series | pd.DataFrame:
    """The column as pandas has it."""
    if dtype.kind == "struct":
        # `flatten` knows that a member of a NULL is NULL.
        members = zip(dtype.fields, column.flatten(), strict=True)
        return pd.DataFrame({f.name: to_series(values, f.dtype, zone) for f, values in members})
    if dtype.kind == "timestamp":
        column = pc.local_timestamp(column.cast(pa.timestamp("us", zone.key)))
    return column.to_pandas(date_as_object=True, coerce_temporal_nanoseconds=True)


def from_series(found: Any, dtype: DataType, zone: ZoneInfo) -> pa.Array:
    """A column of what a function returns.

    Raises:
        pa.ArrowException, TypeError, ValueError, ArithmeticError: It is not of the type.
    """
    if dtype.kind == "struct":
        if not isinstance(found, pd.DataFrame):
            raise TypeError(f"a struct must be a pandas.DataFrame, not a {type(found).__name__}")
        names = [field.name for field in dtype.fields]
        if missing := [name for name in names if name not in found.columns]:
            raise ValueError(f"the DataFrame has no column '{missing[0]}'")
        members = [from_series(found[f.name], f.dtype, zone) for f in dtype.fields]
        return pa.StructArray.from_arrays(members, fields=list(to_arrow(dtype)))
    if not isinstance(found, pd.Series):
        raise TypeError(f"it must be a pandas.Series, not a {type(found).__name__}")
    if dtype.kind == "timestamp":
        if found.dt.tz is not None:
            found = found.dt.tz_convert(zone.key).dt.tz_localize(None)
        wall = pa.Array.from_pandas(found, type=pa.timestamp("us"), safe=False)
        zoned = pc.assume_timezone(wall, zone.key, ambiguous="earliest", nonexistent="latest")
        return zoned.cast(to_arrow(dtype))
    nothing = None if hasattr(found.array, "__arrow_array__") else found.isnull()
    array = pa.Array.from_pandas(found, mask=nothing, type=to_arrow(dtype))
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
