"""Rows of a unit that are stored and no longer in the table.

Formats that never rewrite files say in one of three ways which rows are gone: by their positions in
the unit, by values of columns, or by a file that holds either. A format reads its units without
these rows; engines, which read plain files by themselves, are never given a unit that has deletes.

Worker code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Plain = bool | int | float | str | None


@dataclass(frozen=True)
class DeletedKeys:
    """Rows are deleted whose values in some columns are one of these.

    Args:
        columns: Names of the columns, or their field ids where the table has such.
        values: Values of these columns, as JSON has them; NULL equals NULL.
    """

    columns: tuple[str | int, ...]
    values: tuple[tuple[Plain, ...], ...]


@dataclass(frozen=True)
class DeleteFile:
    """A file that says which rows are deleted; its format knows how to read it.

    Args:
        uri: The file.
        kind: Whether it holds positions of rows or values of columns.
        num_bytes: Its size in bytes.
        offset: Where in the file the deletes of this unit begin.
        columns: Field ids of the columns, for values.
    """

    uri: str
    kind: Literal["positions", "keys"] = "positions"
    num_bytes: int = 0
    offset: int = 0
    columns: tuple[int, ...] = ()


@dataclass(frozen=True)
class UnitDeletes:
    """The deleted rows of a unit: those that any of these tell.

    Args:
        positions: Places of rows in the unit, counted from 0, ascending.
        keys: Rows by values.
        files: Rows that files tell.
    """

    positions: tuple[int, ...] = ()
    keys: tuple[DeletedKeys, ...] = ()
    files: tuple[DeleteFile, ...] = ()

    def kept(self, rows: pa.RecordBatch, row_start: int) -> pa.RecordBatch:
        """Return rows of the unit without those at deleted positions.

        Args:
            rows: Neighbouring rows of the unit.
            row_start: Place of the first of them in the unit.
        """
        import numpy as np
        import pyarrow as pa

        kept = np.ones(rows.num_rows, np.bool_)
        places = np.asarray(self.positions, np.int64) - row_start
        kept[places[(places >= 0) & (places < rows.num_rows)]] = False
        return rows.filter(pa.array(kept))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> UnitDeletes:
        """Return the deletes that `to_dict` described."""
        return cls(
            tuple(values["positions"]),
            tuple(
                DeletedKeys(tuple(keys["columns"]), tuple(map(tuple, keys["values"])))
                for keys in values["keys"]
            ),
            tuple(
                DeleteFile(**{**file, "columns": tuple(file["columns"])})
                for file in values["files"]
            ),
        )
