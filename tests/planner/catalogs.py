"""Small catalogs for planner tests."""

from __future__ import annotations

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.types import Field, parse_type


def table(
    name: str, columns: str, rows: int = 1_000_000, *, distinct: dict[str, int] | None = None
) -> TableInfo:
    """A table such as `table("t", "a int, b string")`; a column takes 8 bytes a row."""
    pairs = [part.strip().split(" ", 1) for part in columns.split(";")]
    fields = tuple(Field(name, parse_type(dtype)) for name, dtype in pairs)
    known = distinct or {}
    limits = {f.name: (0.0, 50.0) if f.name == "total" else (None, None) for f in fields}
    stats = {f.name: ColumnStats(*limits[f.name], 0, known.get(f.name), 8.0) for f in fields}
    sizes = TableStats(rows, rows * 8 * len(fields), max(rows // 100_000, 1), stats)
    return TableInfo(name, fields, sizes)


SALES = MappingCatalog(
    [
        table(
            "orders",
            "id bigint; customer bigint; total decimal(12,2); status string; day date",
            distinct={"id": 1_000_000, "customer": 50_000, "status": 3, "day": 2_000},
        ),
        table(
            "lines",
            "order_id bigint; line int; product bigint; price double; note string",
            40_000_000,
            distinct={"order_id": 1_000_000, "product": 20_000, "line": 7},
        ),
        table(
            "customers",
            "id bigint; name string; city string; rating int",
            50_000,
            distinct={"id": 50_000, "city": 300, "rating": 5},
        ),
        table(
            "products", "id bigint; label string; weight double", 20_000, distinct={"id": 20_000}
        ),
        table("odd", "flag boolean; tags array<string>; moment timestamp", 1_000),
    ]
)

WEATHER = MappingCatalog(
    [
        table(
            "weather",
            "Date date; Location string; MinTemp double; RainToday string",
            3_000_000,
            distinct={"RainToday": 3},
        )
    ]
)
