"""Random tables, chunks and queries, with chunk metadata that is true but may be vague.

A seed always gives the same chunk set.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.plan.expressions import TRUE, Call, Expression, Literal, call, conjoin
from stagecoach.planner.types import BIGINT, BOOLEAN, DOUBLE, Field
from tests.planner.formats.deduplicated.model import Values, grouped

FIELDS = (
    Field("k", BIGINT), Field("ratio", DOUBLE), Field("time", BIGINT),
    Field("f", BIGINT), Field("version", BIGINT), Field("deleted", BOOLEAN),
)  # fmt: skip
GROUP_ROWS = 3
_VALUES: dict[str, list[Any]] = {
    "k": [None, 0, 1],
    "ratio": [None, 0.0, -0.0, 1.5, math.nan],
    "time": list(range(12)),
    "f": [None, *range(8)],
    "version": [None, 1, 2],
    "deleted": [None, False, False, True],
}
_KEYS = (("k", "time"), ("k", "time"), ("k", "ratio", "time"), ("time",), ("k",), ("ratio",))


@dataclass(frozen=True)
class ChunkSet:
    """A table with its chunks and their rows, and a query."""

    context: ChunkContext
    chunks: tuple[Chunk, ...]
    rows: dict[str, list[Values]]
    predicate: Expression
    columns: tuple[str, ...] | None


def chunk_set(seed: int) -> ChunkSet:
    """A chunk set of up to seven chunks of up to eight rows."""
    rng = random.Random(seed)
    key = list(rng.choice(_KEYS))
    rng.shuffle(key)
    table = DedupTable(
        name="t",
        columns=FIELDS,
        primary_key=tuple(key),
        time_column=rng.choice(["time", "time", "time", None]),
        partition_by=rng.choice([(), (), ("k",), ("ratio",), ("k", "ratio")]),
        version_column=rng.choice([None, None, None, "version"]),
        delete_column=rng.choice([None, "deleted"]),
    )
    context = ChunkContext(
        table, target_partitions=rng.randint(1, 3), max_groups=rng.choice([1, 2, 256, 256])
    )
    rows: dict[str, list[Values]] = {}
    chunks = []
    is_vague = rng.random() < 0.3
    for number in range(rng.choice([0, 1, 2, 3, 4, 5, 6, 7])):
        columns, values = _rows(rng, table, is_vague)
        chunks.append(_described(rng, table, number, columns, values, is_vague))
        rows[chunks[-1].chunk_id] = values
    rng.shuffle(chunks)
    columns_read = None
    if rng.random() < 0.7:
        columns_read = tuple(rng.sample(table.column_names, rng.randint(1, len(FIELDS))))
    return ChunkSet(context, tuple(chunks), rows, _predicate(rng, context), columns_read)


def _rows(
    rng: random.Random, table: DedupTable, is_vague: bool
) -> tuple[tuple[Field, ...], list[Values]]:
    absent = set()
    if rng.random() < 0.3:
        absent = set(rng.sample(["ratio", "f", "version", "deleted"], rng.randint(1, 2)))
    columns = tuple(f for f in FIELDS if f.name not in absent)
    fixed: dict[str, Any] = {}
    if rng.random() < 0.7:
        fixed = {c: rng.choice(_VALUES[c]) for c in table.partition_by}
    start, width = rng.randint(0, 12), rng.choice([0, 1, 2, 4, 8])
    with_nulls = is_vague and rng.random() < 0.2
    rows = []
    for _ in range(rng.randint(0 if is_vague else 1, 8)):
        row = {f.name: rng.choice(_VALUES[f.name]) for f in columns}
        row["time"] = rng.choice([start + rng.randint(0, width), *([None] if with_nulls else [])])
        rows.append({name: fixed.get(name, value) for name, value in row.items()})
    if rng.random() < 0.7:
        known: dict[tuple[object, ...], Values] = {}
        for row in rows:
            known.setdefault(_key(row, table), row)
        rows = list(known.values())
    return columns, rows


def _key(row: Values, table: DedupTable) -> tuple[object, ...]:
    return tuple(grouped(row.get(c)) for c in table.primary_key)


def _described(
    rng: random.Random,
    table: DedupTable,
    number: int,
    columns: tuple[Field, ...],
    rows: list[Values],
    is_vague: bool,
) -> Chunk:
    names = [f.name for f in columns]
    times = [row["time"] for row in rows]
    known = bool(times) and None not in times and not (is_vague and rng.random() < 0.2)
    slack = rng.choice([0, 1]) if is_vague else 0
    partitions = [tuple(row.get(c) for c in table.partition_by) for row in rows]
    one = len({tuple(map(grouped, p)) for p in partitions}) == 1 and bool(table.partition_by)
    nulls = [c for c in table.primary_key if all(row.get(c) is None for row in rows)]
    order = tuple(c for c in rng.choice([(), ("time",), ("k", "time"), ("ratio",)]) if c in names)
    rows.sort(key=lambda row: [_ordered(row[c]) for c in order])
    unsure = is_vague and rng.random() < 0.3
    return Chunk(
        chunk_id=f"c{number}",
        kind=rng.choice(["parquet", "parquet", "arrow"]),
        store=rng.choice(["file", "file", "s3://b"]),
        num_rows=len(rows),
        num_bytes=10 * len(rows),
        row_groups=tuple(min(GROUP_ROWS, len(rows) - i) for i in range(0, len(rows), GROUP_ROWS)),
        sequence=number + 1,
        columns=columns,
        partition=partitions[0] if one and not unsure else None,
        time_min=min(times) - slack if known else None,
        time_max=max(times) + slack if known else None,
        sort_order=order,
        group_starts=tuple(row[order[0]] for row in rows[::GROUP_ROWS]) if order else (),
        may_contain_duplicates=len({_key(r, table) for r in rows}) < len(rows) or unsure,
        has_deletes=any(row.get("deleted") for row in rows) or unsure,
        null_columns=tuple(nulls) if rows else (),
    )


def _ordered(value: Any) -> tuple[int, Any]:
    """Sorts NULL first and NaN last."""
    if value is None:
        return 0, 0
    return (2, 0) if math.isnan(value) else (1, value)


def _predicate(rng: random.Random, context: ChunkContext) -> Expression:
    """A conjunction with OR, NOT, functions and NULLs."""
    parts = [_part(rng, context, 2) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    return conjoin(parts) if parts else TRUE


def _part(rng: random.Random, context: ChunkContext, depth: int) -> Expression:
    if depth and rng.random() < 0.3:
        inner = [_part(rng, context, depth - 1) for _ in range(2)]
        function = rng.choice(["and", "or", "not"])
        return call(function, BOOLEAN, *inner[: 1 if function == "not" else 2])
    number = rng.choice(["k", "time", "f", "version"])
    compare = rng.choice(["eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"])
    value = rng.choice([None, 0, 1, 2, 5, 9])
    ref = context.ref
    choices: list[Expression] = [
        call(compare, BOOLEAN, ref(number), Literal(BIGINT, value)),
        call(compare, BOOLEAN, ref("time"), Literal(BIGINT, rng.randint(0, 14))),
        call(
            compare, BOOLEAN, ref("ratio"),
            Literal(DOUBLE, rng.choice([None, 0.0, -0.0, 1.0, math.nan])),
        ),
        call("is_null", BOOLEAN, ref(rng.choice(context.table.column_names))),
        Call(BOOLEAN, "in", (ref(number), Literal(BIGINT, 1), Literal(BIGINT, value))),
        call("eq", BOOLEAN, call("half", BIGINT, ref(number)), Literal(BIGINT, 1)),
        call(
            "eq", BOOLEAN, call("sign_text", DOUBLE, ref("ratio")),
            Literal(DOUBLE, rng.choice([-1.0, 1.0])),
        ),
        ref("deleted"),
        Literal(BOOLEAN, rng.choice([True, False, None])),
    ]  # fmt: skip
    return rng.choice(choices)
