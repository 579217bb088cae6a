"""Statistics that make rules fire: a catalog with invented numbers over real schemas.

Statistics never decide whether a plan is right, so a test may tell any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.types import Field, from_arrow

if TYPE_CHECKING:
    import pyarrow as pa

NUM_ROWS, NUM_BYTES = 2_000_000, 1 << 26


def few_values(schemas: Mapping[str, pa.Schema], *, distinct: int = 6) -> MappingCatalog:
    """Large tables, each column of which has few different values."""
    known = ColumnStats(distinct_count=distinct, avg_bytes=8.0)
    return MappingCatalog(
        [
            TableInfo(
                name,
                tuple(Field(f.name, from_arrow(f.type)) for f in schema),
                TableStats(NUM_ROWS, NUM_BYTES, 2, dict.fromkeys(schema.names, known)),
            )
            for name, schema in schemas.items()
        ]
    )
