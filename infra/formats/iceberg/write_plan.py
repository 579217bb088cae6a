"""How tasks write the data files of an Iceberg table: with the table's field ids.

Worker code, without pyiceberg.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stagecoach.infra.formats.iceberg.stored_metrics import file_metrics
from stagecoach.infra.formats.lake_tables.write_plan import LakePlan
from stagecoach.infra.formats.mapped_files.columns import MappedColumn
from stagecoach.infra.formats.result_files import WrittenParquet
from stagecoach.planner.types import to_arrow

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, kw_only=True)
class IcebergPlan(LakePlan):
    """What all files of a commit have in common."""

    @property
    def stored(self) -> pa.Schema:
        """The columns of the data files, each with its field id."""
        return stored_schema(self.trees)

    def described(self, file: WrittenParquet) -> dict[str, Any]:
        """Return a file's partition and metrics, for `commit.data_files`."""
        metrics = file_metrics(file.metadata, self.trees, self.exact)
        return {"partition": self.partition_values(file), **metrics}


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
