"""How tasks write the data files of a Delta table: without the columns of its partitions.

Worker code, without deltalake.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.delta.stored_statistics import file_statistics
from stagecoach.infra.formats.lake_tables.write_plan import LakePlan
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.formats.result_files import WrittenParquet
from stagecoach.infra.formats.row_keys import GroupKey
from stagecoach.planner.types import DataType, Field, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class DeltaPlan(LakePlan):
    """What all files of a commit have in common."""

    @property
    def stored(self) -> pa.Schema:
        """The columns of the data files."""
        fields = [Field(tree.name, tree.dtype) for tree in self.trees]
        return arrow_schema(tuple(f for f in fields if f.name not in self.partition_by))

    def described(self, file: WrittenParquet) -> dict[str, Any]:
        """Return a file's partition and statistics, for `commit.add_actions`."""
        stored = [tree for tree in self.trees if tree.name not in self.partition_by]
        return {
            "partition": self._texts(file.group),
            "stats": file_statistics(file.metadata, stored, self.exact),
        }

    def check_piece(self, key: GroupKey, piece: pa.RecordBatch) -> None:
        """Look whether the table takes rows of one group."""
        super().check_piece(key, piece)
        self._texts(key)

    def _texts(self, key: GroupKey) -> dict[str, str | None]:
        """The values of a partition as the log has them."""
        found = {}
        for name, text in zip(self.partition_by, key[1], strict=True):
            try:
                found[name] = None if text is None else partition_text(text, self._types[name])
            except ValueError as error:
                raise PublishError(
                    f"table '{self.table}': partition column '{name}' has {error}; leave such rows "
                    "out, or partition by another column"
                ) from None
        return found

    @property
    def _types(self) -> Mapping[str, DataType]:
        return {tree.name: tree.dtype for tree in self.trees}


def partition_text(text: str, dtype: DataType) -> str:
    """Return a value of a partition as the log has it.

    Args:
        text: The value as pyarrow writes it.
        dtype: Type of the column.

    Raises:
        ValueError: The log cannot tell it.
    """
    if dtype.kind == "string" and not text:
        raise ValueError("an empty text, which Delta tables take for NULL")
    try:
        if dtype.kind == "date":
            return datetime.date.fromisoformat(text).isoformat()
        if dtype.kind in ("timestamp", "timestamp_ntz"):
            moment = datetime.datetime.fromisoformat(text.removesuffix("Z"))
            # With its zone, as the protocol has it: readers would take their own one.
            zone = "Z" if dtype.kind == "timestamp" else ""
            return moment.isoformat("T" if zone else " ", timespec="microseconds") + zone
    except ValueError:
        raise ValueError(f"{text}, a year that is out of range") from None
    return text
