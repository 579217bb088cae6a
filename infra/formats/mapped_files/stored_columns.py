"""The columns of a Parquet file by field ids, and the SQL that reads them as a table's columns.

Worker code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.engines.duckdb.parquet_bounds import leaves_out_values, without_bounds
from stagecoach.infra.formats.mapped_files.columns import MappedColumn, MappedName
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType

_FIELD_ID = b"PARQUET:field_id"
_UUID_GROUPS = "'(.{8})(.{4})(.{4})(.{4})(.{12})', '\\1-\\2-\\3-\\4-\\5'"


@dataclass(frozen=True)
class StoredField:
    """A column of a file, or a member of one.

    Args:
        field_id: Its id; None for one that is of no column of the table.
        name: Its name in the file.
        kind: Its type, as pyarrow reads it.
        members: Members of a struct, the element of a list, key and value of a map.
        place: Its place, from 0 on, where SQL must not name it (`placed`).
    """

    field_id: int | None
    name: str
    kind: pa.DataType
    members: tuple[StoredField, ...] = ()
    place: int | None = None

    @property
    def sql_name(self) -> str:
        """What SQL calls the column."""
        return self.name if self.place is None else f"c{self.place}"


def stored_fields(
    metadata: pq.FileMetaData, names: Sequence[MappedName], *, by_names: bool = False
) -> tuple[StoredField, ...]:
    """Return the columns of a file.

    Args:
        metadata: Its footer.
        names: Which columns its names stand for, if it has no ids.
        by_names: Whether names count for files with ids, too. Then their case does not matter, as
            Spark reads the files of a format without ids.

    Raises:
        CatalogError: The file has no ids, and nothing says which columns its names stand for.
    """
    schema = metadata.schema.to_arrow_schema()
    found = tuple(_stored(field) for field in schema)
    if by_names or (found and not any(_has_ids(field) for field in found)):
        if not names and not by_names:
            raise CatalogError(
                "the file has no field ids, and the table does not say which columns its names "
                "stand for; write the file with field ids, or set a name mapping "
                "(schema.name-mapping.default of an Iceberg table)"
            )
        return _mapped(found, names, any_case=by_names)
    return found


def _stored(field: pa.Field) -> StoredField:
    number = (field.metadata or {}).get(_FIELD_ID)
    kind = field.type
    inner: list[pa.Field] = []
    if pa.types.is_struct(kind):
        inner = [kind.field(i) for i in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = [kind.value_field]
    members = tuple(map(_stored, inner))
    return StoredField(None if number is None else int(number), field.name, kind, members)


def _has_ids(field: StoredField) -> bool:
    return field.field_id is not None or any(map(_has_ids, field.members))


def _mapped(
    fields: Sequence[StoredField], names: Sequence[MappedName], *, any_case: bool
) -> tuple[StoredField, ...]:
    """Columns of a file, or members of one, with the ids that their names stand for."""
    theirs = {field.name for field in fields}
    found = []
    for field in fields:
        mapped = next((mapped for mapped in names if field.name in mapped.names), None)
        if mapped is None and any_case:
            lower = field.name.lower()
            mapped = next(
                (
                    mapped
                    for mapped in names
                    if lower in map(str.lower, mapped.names) and theirs.isdisjoint(mapped.names)
                ),
                None,
            )
        if mapped is None:
            found.append(replace(field, field_id=None))
        else:
            found.append(_mapped_field(field, mapped, any_case=any_case))
    return tuple(found)


def _mapped_field(field: StoredField, mapped: MappedName, *, any_case: bool) -> StoredField:
    inner = field.members
    if pa.types.is_map(field.kind):  # whose members go by these names, whatever the file's are
        inner = tuple(
            replace(member, field_id=None, name=name)
            for name, member in zip(("key", "value"), inner, strict=True)
        )
    elif not pa.types.is_struct(field.kind):
        inner = tuple(replace(member, field_id=None, name="element") for member in inner)
    members = _mapped(inner, mapped.members, any_case=any_case)
    if not pa.types.is_struct(field.kind):
        originals = zip(members, field.members, strict=True)
        members = tuple(replace(member, name=original.name) for member, original in originals)
    return replace(field, field_id=mapped.field_id, members=members)


def placed(
    fields: tuple[StoredField, ...], reserved: Collection[str] = ()
) -> tuple[StoredField, ...]:
    """Return the columns of a file with their places, if SQL cannot tell them by their names.

    Formats with ids tell names apart by case, DuckDB does not: it has the first of them for all.

    Args:
        fields: The columns.
        reserved: Names that columns of DuckDB's own have.
    """
    names = {field.name.lower() for field in fields}
    if names.isdisjoint(reserved) and not _has_clash(fields):
        return fields
    return _placed(fields)


def _has_clash(fields: Sequence[StoredField]) -> bool:
    names = {field.name.lower() for field in fields}
    return len(names) < len(fields) or any(_has_clash(field.members) for field in fields)


def _placed(fields: Sequence[StoredField]) -> tuple[StoredField, ...]:
    return tuple(replace(f, place=i, members=_placed(f.members)) for i, f in enumerate(fields))


def column_sql(
    column: MappedColumn, stored: Sequence[StoredField], constants: Mapping[int, str | None]
) -> tuple[str, StoredField | None]:
    """Return SQL of a column of the table in rows of a file, and the file's column if it has one.

    Args:
        column: The column of the table.
        stored: The columns of the file.
        constants: Values of the file's identity partition, by field id.
    """
    found = next((field for field in stored if field.field_id == column.field_id), None)
    if found is None:
        return _missing(column, constants), None
    source = duckdb_name(found.sql_name)
    if leaves_out_values(column.dtype):
        source = without_bounds(source)
    return _converted(source, found, column, constants, 0), found


def _missing(column: MappedColumn, constants: Mapping[int, str | None]) -> str:
    """A column that a file lacks: its partition's value, its default, or NULL."""
    text = constants.get(column.field_id, column.default)
    return literal_sql(text, column.dtype)


def literal_sql(text: str | None, dtype: DataType) -> str:
    """Return SQL of a value as `MappedColumn.default` has it."""
    kind = duckdb_type(dtype)
    if text is None:
        return f"CAST(NULL AS {kind})"
    if dtype.kind == "binary":
        return f"unhex('{text}')"
    quoted = text.replace("'", "''")
    return f"CAST('{quoted}' AS {kind})"


def _converted(
    source: str,
    stored: StoredField,
    column: MappedColumn,
    constants: Mapping[int, str | None],
    depth: int,
) -> str:
    """A value of a file as one of the table."""
    kind = duckdb_type(column.dtype)
    if column.dtype.is_atomic:
        return _cast(source, stored.kind, column.dtype, kind)
    if _is_alike(stored, column):
        # DuckDB drops a cast to the type that is there, so filters on members reach the file.
        return f"CAST({source} AS {kind})"
    if column.dtype.kind == "struct":
        found = {member.field_id: member for member in stored.members}
        items = []
        for member in column.members:
            inner = found.get(member.field_id)
            value = (
                _missing(member, constants)
                if inner is None
                else _converted(_member(source, inner), inner, member, constants, depth)
            )
            items.append(f"{duckdb_name(member.name)} := {value}")
        packed = f"struct_pack({', '.join(items)})"
        return f"CASE WHEN {source} IS NULL THEN CAST(NULL AS {kind}) ELSE {packed} END"
    name = f"e{depth}"
    if column.dtype.kind == "array":
        inner_sql = _converted(name, stored.members[0], column.members[0], constants, depth + 1)
        return f"CAST(list_transform({source}, lambda {name}: {inner_sql}) AS {kind})"
    pairs = [
        _converted(f"{name}[{_text(part)}]", member, wanted, constants, depth + 1)
        for part, member, wanted in zip(
            ("key", "value"), stored.members, column.members, strict=True
        )
    ]
    entries = (
        f"list_transform(map_entries({source}), "
        f"lambda {name}: struct_pack(key := {pairs[0]}, value := {pairs[1]}))"
    )
    return (
        f"CASE WHEN {source} IS NULL THEN CAST(NULL AS {kind}) "
        f"ELSE CAST(map_from_entries({entries}) AS {kind}) END"
    )


def _member(source: str, inner: StoredField) -> str:
    """A member of a struct in a file."""
    if inner.place is None:
        return f"{source}[{_text(inner.name)}]"
    return f"struct_extract_at({source}, {inner.place + 1})"


def _cast(source: str, stored: pa.DataType, wanted: DataType, kind: str) -> str:
    if wanted.kind == "timestamp" and pa.types.is_timestamp(stored) and stored.tz is None:
        # INT96: an instant that is stored without its zone.
        return f"make_timestamptz(epoch_us({source}))"
    if wanted.kind == "timestamp_ntz" and pa.types.is_timestamp(stored) and stored.tz is not None:
        return f"make_timestamp(epoch_us({source}))"
    if wanted.kind == "string" and pa.types.is_fixed_size_binary(stored):  # a UUID
        return f"regexp_replace(lower(hex({source})), {_UUID_GROUPS})"
    return f"CAST({source} AS {kind})"


def _is_alike(stored: StoredField, column: MappedColumn) -> bool:
    """Whether a cast converts: members have the same names and ids, in order."""
    if column.dtype.is_atomic:
        if pa.types.is_timestamp(stored.kind):
            return (stored.kind.tz is None) == (column.dtype.kind == "timestamp_ntz")
        return not (pa.types.is_fixed_size_binary(stored.kind) and column.dtype.kind == "string")
    if len(stored.members) != len(column.members):
        return False
    named = column.dtype.kind == "struct"
    # An array has one element and a map one key, whatever their ids.
    return all(
        (not named or (ours.field_id, ours.name) == (theirs.field_id, theirs.name))
        and (not named or ours.place is None)
        and _is_alike(ours, theirs)
        for ours, theirs in zip(stored.members, column.members, strict=True)
    )


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
