"""The columns of a result as those of an Iceberg table, and the other way round.

Types are those of Iceberg's own integration with Spark, so `tinyint` and `smallint` become `int`.
Whether a result fits is told without pyiceberg and without data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stagecoach.infra.formats.publishing import PublishError, column_difference
from stagecoach.infra.formats.result_columns import check_columns, partition_columns
from stagecoach.planner.types import INT, DataType, Field

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

_ATOMIC = (
    *("boolean", "int", "bigint", "float", "double", "decimal", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz"),
)
_WIDENED = ("tinyint", "smallint")
_IDENTITY = ("boolean", "int", "bigint", "decimal", "string", "date", "timestamp", "timestamp_ntz")


def check_iceberg_columns(columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
    """Look whether a result with these columns can be an Iceberg table; needs no data.

    Raises:
        PublishError: Iceberg has no such type, two columns share a name, or files cannot be
            divided by a column.
    """
    check_columns(columns)
    for column in columns:
        _check_type(column.name, column.dtype)
    for name, found in partition_columns(columns, partition_by):
        if widened(found.dtype).kind not in _IDENTITY:
            raise PublishError(
                f"partition_by names '{name}', which is {found.dtype}; an Iceberg table is "
                "partitioned by texts, whole numbers, decimals, booleans, dates or timestamps: "
                f"cast it, such as CAST({name} AS DATE)"
            )


def iceberg_columns(columns: Sequence[Field]) -> tuple[Field, ...]:
    """Return the columns as readers of the table see them."""
    return tuple(Field(column.name, widened(column.dtype)) for column in columns)


def widened(dtype: DataType) -> DataType:
    """Return the type that an Iceberg table has for a type of Spark."""
    if dtype.kind in _WIDENED:
        return INT
    if not dtype.fields:
        return dtype
    fields = tuple(Field(member.name, widened(member.dtype)) for member in dtype.fields)
    return DataType(dtype.kind, fields=fields)


def new_schema(columns: Sequence[Field], comments: Mapping[str, str]) -> Schema:
    """Return the schema of a table that is to be created.

    Args:
        columns: Of the result.
        comments: What columns mean, by name.
    """
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    numbers = _numbers()
    found = [
        NestedField(
            next(numbers), c.name, _iceberg_type(c.dtype, numbers), doc=comments.get(c.name)
        )
        for c in iceberg_columns(columns)
    ]
    return Schema(*found)


def check_schema(table: str, schema: Schema, columns: Sequence[Field]) -> None:
    """Look whether a table that is there takes a result.

    Args:
        table: Name of the table, for messages.
        schema: Its present columns.
        columns: Of the result.

    Raises:
        PublishError: A column differs.
    """
    from pyiceberg.types import FixedType, UUIDType

    from stagecoach.infra.formats.iceberg.schema import fields_of, table_columns

    for field in schema.fields:
        if isinstance(field.field_type, UUIDType | FixedType):
            raise PublishError(
                f"table '{table}': column '{field.name}' is of Iceberg's type {field.field_type}, "
                "which results have not; publish to another table"
            )
        for path, member in _members(field):
            if member.required:
                raise PublishError(
                    f"table '{table}': '{path}' is required, which is not checked in results; "
                    "make it optional, or publish to another table"
                )
    problem = column_difference(fields_of(table_columns(schema)), iceberg_columns(columns))
    if problem is not None:
        raise PublishError(
            f"table '{table}': the table does not match the result: {problem}; change the query, "
            "or alter the table with the tool that manages it"
        )


def _members(field: NestedField, path: str = "") -> Iterator[tuple[str, NestedField]]:
    """The fields inside of a column that may be required."""
    from pyiceberg.types import ListType, MapType, StructType

    path = f"{path}.{field.name}" if path else field.name
    kind = field.field_type
    found: list[NestedField] = []
    if isinstance(kind, StructType):
        found = list(kind.fields)
    elif isinstance(kind, ListType):
        found = [kind.element_field]
    elif isinstance(kind, MapType):
        found = [kind.value_field]  # keys always are
    for member in found:
        yield f"{path}.{member.name}", member
        yield from _members(member, path)


def new_spec(schema: Schema, partition_by: Sequence[str]) -> PartitionSpec:
    """Return the partition spec of a table that is to be created: identities."""
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    return PartitionSpec(
        *(
            PartitionField(
                schema.find_field(name).field_id,
                PARTITION_FIELD_ID_START + position,
                IdentityTransform(),
                name,
            )
            for position, name in enumerate(partition_by)
        )
    )


def spec_columns(
    table: str, schema: Schema, spec: PartitionSpec, partition_by: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns whose values are the partitions of a table that is there.

    Args:
        table: Name of the table, for messages.
        schema: Its present columns.
        spec: Its present partition spec.
        partition_by: What the query says; nothing for whatever the table has.

    Raises:
        PublishError: The spec has another transform, or other columns than the query says.
    """
    from pyiceberg.transforms import IdentityTransform, VoidTransform

    found: list[str] = []
    for field in spec.fields:
        name = schema.find_column_name(field.source_id) or ""
        if isinstance(field.transform, VoidTransform):
            # Partition values go by position, and that of a dropped field is NULL.
            found.append("")
            continue
        kind = next((f.field_type for f in schema.fields if f.name == name), None)
        if not isinstance(field.transform, IdentityTransform) or kind is None:
            raise PublishError(
                f"table '{table}' is partitioned by {field.transform}({name}), and results are "
                "written only to partitions by the values of columns; publish to another table"
            )
        if str(kind) in ("float", "double"):
            raise PublishError(
                f"table '{table}' is partitioned by the {kind} column '{name}', which results are "
                "not divided by; publish to another table"
            )
        found.append(name)
    named = tuple(name for name in found if name)
    if partition_by and tuple(partition_by) != named:
        raise PublishError(
            f"table '{table}' is partitioned by ({', '.join(named) or 'nothing'}), and "
            f"partition_by says ({', '.join(partition_by)}); make them equal"
        )
    return tuple(found)


def _check_type(path: str, dtype: DataType) -> None:
    for member in dtype.fields:
        _check_type(f"{path}.{member.name}", member.dtype)
    if dtype.is_atomic and dtype.kind not in (*_ATOMIC, *_WIDENED):
        raise PublishError(
            f"column '{path}' is {dtype}, which Iceberg tables of version 2 do not have; cast it, "
            "such as CAST(… AS STRING)"
        )


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


def _iceberg_type(dtype: DataType, numbers: Iterator[int]) -> IcebergType:
    from pyiceberg import types as it

    inner = dtype.fields
    match dtype.kind:
        case "struct":
            return it.StructType(
                *(
                    it.NestedField(next(numbers), f.name, _iceberg_type(f.dtype, numbers))
                    for f in inner
                )
            )
        case "array":
            return it.ListType(
                next(numbers), _iceberg_type(inner[0].dtype, numbers), element_required=False
            )
        case "map":
            return it.MapType(
                next(numbers),
                _iceberg_type(inner[0].dtype, numbers),
                next(numbers),
                _iceberg_type(inner[1].dtype, numbers),
                value_required=False,
            )
        case "decimal":
            return it.DecimalType(dtype.precision, dtype.scale)
    known: dict[str, IcebergType] = {
        "boolean": it.BooleanType(),
        "int": it.IntegerType(),
        "bigint": it.LongType(),
        "float": it.FloatType(),
        "double": it.DoubleType(),
        "date": it.DateType(),
        "timestamp": it.TimestamptzType(),
        "timestamp_ntz": it.TimestampType(),
        "string": it.StringType(),
        "binary": it.BinaryType(),
    }
    return known[dtype.kind]
