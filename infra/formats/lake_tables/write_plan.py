"""How tasks write the data files of one commit to a table of a lake: in place, in its columns.

Worker code, without the formats' libraries: a plan has all that a task needs as plain data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from stagecoach.infra.formats.lake_tables.leftovers import lake_store
from stagecoach.infra.formats.mapped_files.columns import MappedColumn
from stagecoach.infra.formats.publishing import PublishError, WritePlan
from stagecoach.infra.formats.result_files import FileNames, ParquetFiles, WrittenParquet
from stagecoach.infra.formats.row_keys import Grouping, GroupKey, RowKeys
from stagecoach.infra.reading.inputs import conform
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode
from stagecoach.planner.types import Field, arrow_schema


@dataclass(frozen=True, kw_only=True)
class LakePlan(WritePlan):
    """What all files of a commit have in common.

    Attributes:
        table: Name of the table.
        location: Folder of this commit's data files, as the table spells it.
        token: Prefix of the files' names, of this commit only.
        columns: The result's columns, in its order.
        trees: The same columns in the table.
        required: Positions of columns that have no NULLs.
        partition_by: Columns whose values are the partitions, by position in the table's own list;
            empty for one that has no column.
        partition_key: The partition key of all rows, or None.
        row_keys: How each row tells its own, or None.
        target_bytes: Size at which a file ends.
        is_rewrite: Whether rows of the table are written again, whatever their partition keys.
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
    is_rewrite: bool = False

    @property
    @abstractmethod
    def stored(self) -> pa.Schema:
        """The columns of the data files."""

    @abstractmethod
    def described(self, file: WrittenParquet) -> dict[str, Any]:
        """Return what the format's commit must know of a file besides path, rows and bytes."""

    def check_piece(self, key: GroupKey, piece: pa.RecordBatch) -> None:
        """Look whether the table takes rows of one group.

        Raises:
            PublishError: It does not.
        """
        for position in self.required:
            if piece.column(position).null_count:
                name = self.columns[position].name
                raise PublishError(
                    f"table '{self.table}': column '{name}' is required, and a row of the result "
                    f"has NULL; leave such rows out (WHERE {name} IS NOT NULL), or give a value"
                )

    def write_reported(
        self,
        store: ObjectStore,
        batches: Iterable[pa.RecordBatch],
        *,
        task_index: int,
        attempt: int,
        writes_empty: bool,
    ) -> list[dict[str, Any]]:
        """Write rows to data files and describe these for the format's commit.

        A result without rows has no files: the table has its columns by itself.
        """
        result, stored = arrow_schema(self.columns), self.stored
        positions = [result.get_field_index(name) for name in stored.names]
        grouping = Grouping(
            partition_key=None if self.is_rewrite else self.partition_key,
            row_keys=None if self.is_rewrite else self.row_keys,
            folders=tuple(result.get_field_index(name) for name in self.partition_names),
        )
        names = FileNames(
            token=self.token, task_index=task_index, attempt=layout.new_attempt(attempt)
        )

        def key_of(group: GroupKey, number: int) -> str:
            return names.name(number)

        options = {"store_decimal_as_integer": True}
        lake = self.data_store(store)
        with ParquetFiles(lake, stored, key_of, self.target_bytes, options) as written:
            for batch in batches:
                for key, piece in grouping.split(conform(batch, result)):
                    self.check_piece(key, piece)
                    written.write(key, _as_stored(piece, positions, stored))
            files = written.close()
        return [
            {
                "path": f"{self.location}/{file.key}",
                "num_rows": file.num_rows,
                "num_bytes": file.num_bytes,
                "partition_key": file.group[0],
                **self.described(file),
            }
            for file in files
        ]

    def data_store(self, store: ObjectStore) -> ObjectStore:
        """Return the folder of this commit's data files.

        Args:
            store: The storage root, which is reached in the same way.
        """
        return lake_store(store, self.location)

    @property
    def partition_names(self) -> tuple[str, ...]:
        """The columns whose values are the partitions."""
        return tuple(name for name in self.partition_by if name)

    def partition_values(self, file: WrittenParquet) -> list[str | None]:
        """Return the partition of a file as texts, by position in the table's own list."""
        values = dict(zip(self.partition_names, file.group[1], strict=True))
        return [values.get(name) for name in self.partition_by]

    @property
    def exact(self) -> tuple[int, ...]:
        """Ids of columns whose bounds are kept whole: rows are told apart by them."""
        return () if self.row_keys is None else (self.trees[self.row_keys.column].field_id,)

    def rewriting(self) -> Self:
        """Return how rows of the table are written again, which have its types."""
        columns = tuple(Field(tree.name, tree.dtype) for tree in self.trees)
        return replace(self, columns=columns, is_rewrite=True)

    def sized(self, target_bytes: int) -> Self:
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
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
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


def _as_stored(piece: pa.RecordBatch, positions: list[int], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [piece.column(position) for position in positions]
    columns = [
        array if array.type.equals(field.type) else array.cast(field.type)
        for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
