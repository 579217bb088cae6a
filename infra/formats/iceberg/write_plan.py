"""How tasks write the data files of an Iceberg table: in place, with the table's field ids.

Worker code, without pyiceberg: the plan has all that a task needs of the table as plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from stagecoach.infra.formats.iceberg.stored_metrics import file_metrics
from stagecoach.infra.formats.mapped_files.columns import MappedColumn
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.formats.publishing import PublishError, WritePlan
from stagecoach.infra.formats.result_files import FileNames, ParquetFiles, WrittenParquet
from stagecoach.infra.formats.row_keys import Grouping, GroupKey, RowKeys
from stagecoach.infra.reading.inputs import conform
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode
from stagecoach.planner.types import Field, arrow_schema, to_arrow

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, kw_only=True)
class IcebergPlan(WritePlan):
    """What all files of a commit have in common.

    Attributes:
        table: Name of the table.
        location: Folder of this commit's data files, as the table spells it.
        token: Prefix of the files' names, of this commit only.
        columns: The result's columns, in its order.
        trees: The same columns in the table, with their field ids.
        required: Positions of columns that have no NULLs.
        partition_by: Columns whose values are the partitions, by position in the partition spec;
            empty for a field that the spec has dropped.
        partition_key: The partition key of all rows, or None.
        row_keys: How each row tells its own, or None.
        target_bytes: Size at which a file ends.
    """

    table: str
    location: str
    token: str
    columns: tuple[Field, ...]
    trees: tuple[MappedColumn, ...]
    required: tuple[int, ...] = ()
    partition_by: tuple[str, ...] = ()
    partition_key: str | None = None
    row_keys: RowKeys | None = None
    target_bytes: int = 256 << 20

    def write_reported(
        self,
        store: ObjectStore,
        batches: Iterable[pa.RecordBatch],
        *,
        task_index: int,
        attempt: int,
        writes_empty: bool,
    ) -> list[dict[str, Any]]:
        """Write rows to data files and describe these for `commit.data_files`.

        A result without rows has no files: an Iceberg table has its columns by itself.
        """
        lake = self.data_store(store)
        result = arrow_schema(self.columns)
        stored = stored_schema(self.trees)
        grouping = Grouping(
            partition_key=self.partition_key,
            row_keys=self.row_keys,
            folders=tuple(result.get_field_index(name) for name in self._named),
        )
        names = FileNames(
            token=self.token, task_index=task_index, attempt=layout.new_attempt(attempt)
        )

        def key_of(group: GroupKey, number: int) -> str:
            return names.name(number)

        options = {"store_decimal_as_integer": True}
        with ParquetFiles(lake, stored, key_of, self.target_bytes, options) as written:
            for batch in batches:
                for key, piece in grouping.split(conform(batch, result)):
                    self._check_required(piece)
                    written.write(key, _as_stored(piece, stored))
            files = written.close()
        return [self._reported(file) for file in files]

    def data_store(self, store: ObjectStore) -> ObjectStore:
        """Return the folder of this commit's data files.

        Args:
            store: The storage root, which is reached in the same way.
        """
        options = StorageOptions.from_dict(store.to_dict().get("options", {}))
        return open_store(canonical_path(self.location), options)

    @property
    def _named(self) -> tuple[str, ...]:
        return tuple(name for name in self.partition_by if name)

    def _reported(self, file: WrittenParquet) -> dict[str, Any]:
        exact = () if self.row_keys is None else (self.trees[self.row_keys.column].field_id,)
        metrics = file_metrics(file.metadata, self.trees, exact)
        values = dict(zip(self._named, file.group[1], strict=True))
        return {
            "path": f"{self.location}/{file.key}",
            "num_rows": file.num_rows,
            "num_bytes": file.num_bytes,
            "partition": [values.get(name) for name in self.partition_by],
            "partition_key": file.group[0],
            **metrics,
        }

    def _check_required(self, piece: pa.RecordBatch) -> None:
        for position in self.required:
            if piece.column(position).null_count:
                name = self.columns[position].name
                raise PublishError(
                    f"table '{self.table}': column '{name}' is required, and a row of the result "
                    f"has NULL; leave such rows out (WHERE {name} IS NOT NULL), or give a value"
                )

    def sized(self, target_bytes: int) -> IcebergPlan:
        """Return the same plan with another size at which a file ends."""
        return replace(self, target_bytes=target_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {
            **vars(self),
            "columns": encode(self.columns),
            "trees": [tree.to_list() for tree in self.trees],
            "row_keys": None if self.row_keys is None else self.row_keys.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> IcebergPlan:
        """Return the plan that `to_dict` described."""
        row_keys = values["row_keys"]
        return cls(
            **{
                **values,
                "columns": decode(values["columns"]),
                "trees": tuple(map(MappedColumn.from_list, values["trees"])),
                "required": tuple(values["required"]),
                "partition_by": tuple(values["partition_by"]),
                "row_keys": None if row_keys is None else RowKeys.from_dict(row_keys),
            }
        )


def stored_schema(trees: Sequence[MappedColumn]) -> pa.Schema:
    """Return the columns of data files, each with its field id."""
    return pa.schema([_stored_field(tree, tree.name) for tree in trees])


def _stored_field(tree: MappedColumn, name: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(
        name,
        _stored_type(tree),
        nullable=nullable,
        metadata={_FIELD_ID: str(tree.field_id).encode()},
    )


def _stored_type(tree: MappedColumn) -> pa.DataType:
    match tree.dtype.kind:
        case "struct":
            return pa.struct([_stored_field(member, member.name) for member in tree.members])
        case "array":
            return pa.list_(_stored_field(tree.members[0], "element"))
        case "map":
            key, value = tree.members
            return pa.map_(_stored_field(key, "key", nullable=False), _stored_field(value, "value"))
    return to_arrow(tree.dtype)


def _as_stored(piece: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        array if array.type.equals(field.type) else array.cast(field.type)
        for array, field in zip(piece.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
