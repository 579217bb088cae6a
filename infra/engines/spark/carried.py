"""The form in which a result leaves Spark where Arrow has none for its type.

VARIANT, TIME and the spatial types leave as Spark's `DataFrame.toArrow` gives them. Intervals of
months and calendar intervals, which that refuses, leave as the text to which Spark casts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def carried_frame(frame: DataFrame) -> DataFrame:
    """The rows with intervals of months and calendar intervals as texts, also inside of others.

    Columns keep their order; names may repeat, so they are not kept.
    """
    types = [field.dataType for field in frame.schema.fields]
    carried = [carried_type(dtype) for dtype in types]
    if carried == types:
        return frame
    numbered = frame.toDF(*(f"c{position}" for position in range(len(types))))
    columns = [numbered[name] for name in numbered.columns]
    return numbered.select(
        *(
            # Spark refuses a cast to TIME, even of a TIME.
            column if before == after else column.cast(after)
            for column, before, after in zip(columns, types, carried, strict=True)
        )
    )


def carried_type(dtype: DataType) -> DataType:
    """The type as which values leave Spark."""
    from pyspark.sql import types as st

    match dtype:
        case st.YearMonthIntervalType() | st.CalendarIntervalType():
            return st.StringType()
        case st.ArrayType():
            return st.ArrayType(carried_type(dtype.elementType), dtype.containsNull)
        case st.MapType():
            key, value = carried_type(dtype.keyType), carried_type(dtype.valueType)
            return st.MapType(key, value, dtype.valueContainsNull)
        case st.StructType():
            return st.StructType(
                [st.StructField(f.name, carried_type(f.dataType), f.nullable) for f in dtype.fields]
            )
    return dtype
