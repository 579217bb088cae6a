"""Random tables, chunks and queries, with chunk metadata that is true but may be vague."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from planner.chunks.chunk import Chunk, DedupTable
from planner.chunks.context import ChunkContext
from planner.expressions import TRUE, Call, Expression, Literal, call, conjoin
from planner.types import BIGINT, BOOLEAN, DOUBLE, Field
from tests.planner.chunks.model import Values, grouped

FIELDS = (
    Field("k", BIGINT), Field("ratio", DOUBLE), Field("time", BIGINT),
    Field("f", BIGINT), Field("version", BIGINT), Field("deleted", BOOLEAN),
)  # fmt: skip
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.sampled_from([None, 0, 1, 2]),
    "ratio": st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
    "time": st.integers(0, 12),
    "f": st.sampled_from([None, 0, 1, 2, 3, 4, 5, 6, 7]),
    "version": st.sampled_from([None, 1, 2]),
    "deleted": st.sampled_from([None, False, False, True]),
}


@dataclass(frozen=True)
class ChunkSet:
    """A table with its chunks and their rows, and a query."""

    context: ChunkContext
    chunks: tuple[Chunk, ...]
    rows: dict[str, list[Values]]
    predicate: Expression
    columns: tuple[str, ...] | None


@st.composite
def chunk_sets(draw: st.DrawFn) -> ChunkSet:
    """A chunk set of up to seven chunks of up to eight rows."""
    key = draw(
        st.sampled_from([("k", "time"), ("k", "ratio", "time"), ("time",), ("k",), ("ratio",)])
    )
    table = DedupTable(
        name="t",
        columns=FIELDS,
        primary_key=draw(st.permutations(key).map(tuple)),
        time_column=draw(st.sampled_from(["time", "time", None])),
        partition_by=draw(st.sampled_from([(), ("k",), ("ratio",), ("k", "ratio")])),
        version_column=draw(st.sampled_from([None, None, "version"])),
        delete_column=draw(st.sampled_from([None, "deleted"])),
    )
    context = ChunkContext(
        table,
        target_partitions=draw(st.integers(1, 3)),
        max_groups=draw(st.sampled_from([1, 2, 256])),
    )
    rows: dict[str, list[Values]] = {}
    chunks = []
    for number in range(draw(st.integers(0, 7))):
        chunk, values = draw(_chunks(table, number))
        chunks.append(chunk)
        rows[chunk.chunk_id] = values
    chunks = draw(st.permutations(chunks))
    predicate = draw(predicates(context))
    columns = draw(
        st.none() | st.lists(st.sampled_from(table.column_names), unique=True, min_size=1)
    )
    return ChunkSet(
        context, tuple(chunks), rows, predicate, None if columns is None else tuple(columns)
    )


@st.composite
def _chunks(draw: st.DrawFn, table: DedupTable, number: int) -> tuple[Chunk, list[Values]]:
    absent = draw(st.sets(st.sampled_from(["ratio", "f", "version", "deleted"]), max_size=2))
    columns = [f for f in FIELDS if f.name not in absent]
    fixed: dict[str, Any] = {}
    if draw(st.booleans()):
        fixed = {c: draw(_VALUES[c]) for c in table.partition_by}
    start = draw(st.integers(0, 12))
    times = st.integers(start, start + draw(st.integers(0, 4)))
    if draw(st.integers(0, 9)) == 0:
        times = st.none() | times
    values = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    f.name: st.just(fixed[f.name]) if f.name in fixed
                    else times if f.name == "time" else _VALUES[f.name]
                    for f in columns
                }
            ),
            max_size=8,
        )
    )  # fmt: skip
    if draw(st.booleans()):
        values = _first_of_each_key(values, table)
    return _described(draw, table, number, tuple(columns), values), values


def _first_of_each_key(values: list[Values], table: DedupTable) -> list[Values]:
    known: dict[tuple[object, ...], Values] = {}
    for row in values:
        known.setdefault(tuple(grouped(row.get(c)) for c in table.primary_key), row)
    return list(known.values())


def _described(
    draw: st.DrawFn, table: DedupTable, number: int, columns: tuple[Field, ...], rows: list[Values]
) -> Chunk:
    names = [f.name for f in columns]
    times = [row.get("time") for row in rows]
    known = bool(times) and None not in times and draw(st.integers(0, 5)) > 0
    vague = draw(st.sampled_from([0, 0, 1]))
    keys = {tuple(grouped(row.get(c)) for c in table.primary_key) for row in rows}
    partitions = [tuple(row.get(c) for c in table.partition_by) for row in rows]
    one = len({tuple(map(grouped, p)) for p in partitions}) == 1
    nulls = [c for c in table.primary_key if all(row.get(c) is None for row in rows)]
    order = draw(st.sampled_from([(), ("time",), ("k", "time"), ("ratio",)]))
    return Chunk(
        chunk_id=f"c{number}",
        kind=draw(st.sampled_from(["parquet", "arrow"])),
        store=draw(st.sampled_from(["file", "file", "s3://b"])),
        num_rows=len(rows),
        num_bytes=10 * len(rows),
        sequence=number + 1,
        columns=columns,
        partition=partitions[0] if one and table.partition_by and draw(st.integers(0, 5)) else None,
        time_min=min(times) - vague if known else None,
        time_max=max(times) + vague if known else None,
        sort_order=tuple(c for c in order if c in names),
        may_contain_duplicates=len(keys) < len(rows) or draw(st.integers(0, 3)) == 0,
        has_deletes=any(row.get("deleted") for row in rows) or draw(st.integers(0, 3)) == 0,
        null_columns=tuple(nulls) if rows else (),
    )


@st.composite
def predicates(draw: st.DrawFn, context: ChunkContext) -> Expression:
    """A conjunction with OR, NOT, functions and NULLs."""
    parts = draw(st.lists(_parts(context), max_size=3))
    return conjoin(parts) if parts else TRUE


def _parts(context: ChunkContext) -> st.SearchStrategy[Expression]:
    ref = context.ref
    number = st.builds(
        lambda f, c, v: call(f, BOOLEAN, ref(c), Literal(BIGINT, v)),
        st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"]),
        st.sampled_from(["k", "time", "f", "version"]),
        st.sampled_from([None, 0, 1, 2, 5, 9]),
    )
    ratio = st.builds(
        lambda f, v: call(f, BOOLEAN, ref("ratio"), Literal(DOUBLE, v)),
        st.sampled_from(["eq", "lt", "ge", "eq_null_safe"]),
        st.sampled_from([None, 0.0, -0.0, 1.0, math.nan]),
    )
    null = st.sampled_from(context.table.column_names).map(
        lambda c: call("is_null", BOOLEAN, ref(c))
    )
    listed = st.builds(
        lambda c, v: Call(BOOLEAN, "in", (ref(c), *(Literal(BIGINT, x) for x in v))),
        st.sampled_from(["k", "time", "f"]),
        st.lists(st.sampled_from([None, 0, 1, 2, 7]), min_size=1, max_size=3),
    )
    half = st.builds(
        lambda c, v: call("eq", BOOLEAN, call("half", BIGINT, ref(c)), Literal(BIGINT, v)),
        st.sampled_from(["k", "time", "f"]),
        st.integers(0, 4),
    )
    sign = st.sampled_from([-1.0, 1.0]).map(
        lambda v: call("eq", BOOLEAN, call("sign_text", DOUBLE, ref("ratio")), Literal(DOUBLE, v))
    )
    marked = st.just(ref("deleted"))
    constant = st.sampled_from([Literal(BOOLEAN, v) for v in (True, False, None)])
    simple = st.one_of(number, number, ratio, null, listed, half, sign, marked, constant)
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            inner.map(lambda a: call("not", BOOLEAN, a)),
            st.tuples(inner, inner).map(lambda p: call("or", BOOLEAN, *p)),
            st.tuples(inner, inner).map(lambda p: call("and", BOOLEAN, *p)),
        ),
        max_leaves=4,
    )
