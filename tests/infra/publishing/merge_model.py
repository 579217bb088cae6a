"""What merges make of plain rows: the model that tests compare tables with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


def key_value(value: Any) -> Any:
    """A value that is equal where keys are: NULL to NULL, NaN to NaN, -0.0 to 0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def shown(rows: Iterable[Row]) -> list[str]:
    """Rows in an order and a form in which equal ones are equal, signs of zero apart."""
    return sorted(repr(sorted(row.items())) for row in rows)


@dataclass
class Model:
    """A table as rows by key.

    Args:
        key: Columns of the key.
        rows: Rows that nothing has merged; their keys need not differ.
    """

    key: Sequence[str]
    rows: list[Row] = field(default_factory=list)

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(key_value(row[name]) for name in self.key)

    def merge(self, result: Sequence[Row], delete_column: str | None = None) -> None:
        """Replace rows with the keys of a result, insert new ones, delete flagged ones."""
        keys = {self.key_of(row) for row in result}
        assert len(keys) == len(result)
        self.rows = [row for row in self.rows if self.key_of(row) not in keys]
        for row in result:
            if delete_column is None or not row[delete_column]:
                self.rows.append({k: v for k, v in row.items() if k != delete_column})

    def has_duplicates(self, result: Sequence[Row]) -> bool:
        return len({self.key_of(row) for row in result}) < len(result)


def table_of(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)
