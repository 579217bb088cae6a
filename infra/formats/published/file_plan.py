"""How the files of one commit of a published table are written; whoever writes them has the plan.

The files of a large result are written by many tasks, those of a small one by a single process. All
follow the plan of the commit's writer, which names and publishes what they wrote.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from stagecoach.infra.formats.partitions import partition_folder
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.version import TableFile, file_columns
from stagecoach.infra.formats.publishing import WritePlan
from stagecoach.infra.formats.result_files import FileNames, ParquetFiles, WrittenParquet
from stagecoach.infra.formats.row_keys import Grouping, GroupKey, RowKeys
from stagecoach.infra.reading.inputs import conform
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode
from stagecoach.planner.types import Field, arrow_schema


@dataclass(frozen=True, kw_only=True)
class FilePlan(WritePlan):
    """What all files of a commit have in common.

    Attributes:
        table: Name of the table.
        token: Prefix of the files' names, of this commit only.
        columns: The result's columns, in its order.
        partition_by: Those that become folders, outermost first.
        partition_key: The partition key of all rows, or None.
        row_keys: How each row tells its own, or None.
        target_bytes: Size at which a file ends.
    """

    table: str
    token: str
    columns: tuple[Field, ...]
    partition_by: tuple[str, ...]
    partition_key: str | None
    row_keys: RowKeys | None
    target_bytes: int

    def write(
        self,
        store: ObjectStore,
        batches: Iterable[pa.RecordBatch],
        *,
        task_index: int,
        attempt: int = 0,
        writes_empty: bool = False,
    ) -> list[TableFile]:
        """Write rows to files that no version names yet, and return the files.

        Args:
            store: The storage root.
            batches: The rows; columns go by position.
            task_index: Place of the rows among those that others write.
            attempt: Number of the try; files have names of their own whatever it is.
            writes_empty: Whether a file is written even if there are no rows.

        Raises:
            PublishError: A row belongs to no partition.
            StorageError: The store failed.
        """
        result = arrow_schema(self.columns)
        stored = arrow_schema(file_columns(self.columns, self.partition_by))
        positions = [result.get_field_index(name) for name in stored.names]
        grouping = Grouping(
            partition_key=self.partition_key,
            row_keys=self.row_keys,
            folders=tuple(result.get_field_index(name) for name in self.partition_by),
        )
        names = FileNames(
            token=self.token, task_index=task_index, attempt=layout.new_attempt(attempt)
        )
        num_rows = 0

        def key_of(group: GroupKey, number: int) -> str:
            values = zip(self.partition_by, group[1], strict=True)
            folders = [partition_folder(column, value) for column, value in values]
            path = paths.table_file_path(folders, names.name(number))
            return paths.table_file(self.table, path)

        with ParquetFiles(store, stored, key_of, self.target_bytes) as written:
            for batch in batches:
                num_rows += batch.num_rows
                for key, piece in grouping.split(conform(batch, result)):
                    columns = [piece.column(position) for position in positions]
                    written.write(key, pa.RecordBatch.from_arrays(columns, schema=stored))
            if writes_empty and not num_rows:
                first = self.partition_key if self.row_keys is None else self.row_keys.keys[0]
                written.write_empty((first, (None,) * len(self.partition_by)))
            return [self._table_file(file) for file in written.close()]

    def _table_file(self, file: WrittenParquet) -> TableFile:
        return TableFile(
            path=file.key.removeprefix(f"{paths.table_prefix(self.table)}/"),
            num_rows=file.num_rows,
            num_bytes=file.num_bytes,
            row_groups=file.row_groups,
            footer_checksum=file.footer_checksum,
            checksums=file.checksums,
            partition_key=file.group[0],
            partition=file.group[1],
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
        """Write rows to files and describe these for `table_file`."""
        files = self.write(
            store, batches, task_index=task_index, attempt=attempt, writes_empty=writes_empty
        )
        return [dict(vars(file)) for file in files]

    def sized(self, target_bytes: int) -> FilePlan:
        """Return the same plan with another size at which a file ends."""
        return replace(self, target_bytes=target_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        row_keys = None if self.row_keys is None else self.row_keys.to_dict()
        return {**vars(self), "columns": encode(self.columns), "row_keys": row_keys}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FilePlan:
        """Return the plan that `to_dict` described."""
        row_keys = values["row_keys"]
        return cls(
            **{
                **values,
                "columns": decode(values["columns"]),
                "partition_by": tuple(values["partition_by"]),
                "row_keys": None if row_keys is None else RowKeys.from_dict(row_keys),
            }
        )


def table_file(values: Mapping[str, Any]) -> TableFile:
    """Return the file that `FilePlan.write_reported` described."""
    lists = {name: tuple(values[name]) for name in ("row_groups", "partition")}
    return TableFile(**{**values, **lists})
