"""The golden cases of rules over chunks: plans before and after, from a YAML file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, chunk_exec
from stagecoach.planner.types import BIGINT, BOOLEAN, DOUBLE, Field
from tests.planner.formats.deduplicated.plan_reader import plan_from_data

CASES = Path(__file__).parent / "cases"
_COLUMNS = ["tag1", "tag2", "tag", "ratio", "field", "field1", "field2", "deleted", "time"]
_KINDS = {"deleted": BOOLEAN, "ratio": DOUBLE}


@dataclass(frozen=True)
class SomeExec(ChunkPlan):
    """The seed's placeholder of any operator that gives all columns of the table."""

    name: str
    schema: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema


@dataclass(frozen=True)
class Case:
    """One golden case."""

    rule: str
    title: str
    from_design: bool
    context: ChunkContext
    before: ChunkPlan
    after: ChunkPlan


def cases_of(path: Path) -> Iterator[Case]:
    """The cases of a file, which is named like the rule."""
    for body in yaml.safe_load_all(path.read_text()):
        table = _table(body.get("table", {}))
        context = ChunkContext(table, **body.get("context", {}))
        before = _read(body["before"], context, body.get("chunks", {}))
        same = body["after"] == "same"
        after = before if same else _read(body["after"], context, body.get("chunks", {}))
        from_design = body.get("source", "").startswith("design")
        yield Case(path.stem, body["title"], from_design, context, before, after)


def _table(body: dict[str, Any]) -> DedupTable:
    names = body.get("columns", _COLUMNS)
    roles = {k: v for k, v in body.items() if k != "columns"}
    values = {
        "primary_key": ["tag1", "tag2", "time"],
        "time_column": "time",
        **roles,
    }
    lists = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    fields = tuple(Field(n, _KINDS.get(n, BIGINT)) for n in names)
    return DedupTable(name="metrics", columns=fields, **lists)


def _read(data: Any, context: ChunkContext, described: dict[str, Any]) -> ChunkPlan:
    chunks: dict[str, Chunk] = {}
    for name, body in _leaves(data):
        for chunk_id in _chunk_ids(body):
            kind = "arrow" if name == "RecordBatchesExec" else "parquet"
            given = {"kind": kind, "store": body.get("store", "file")}
            chunks[chunk_id] = _chunk(chunk_id, {**given, **described.get(chunk_id, {})}, context)
    seen: dict[str, int] = {}

    def one_chunk(body: dict[str, Any]) -> ChunkPlan:
        text = repr(sorted(body.items()))
        seen[text] = seen.get(text, 0) + 1
        values = {
            "partition": ("partition" in body and [body["partition"]]) or None,
            "time_min": body.get("ts_min"),
            "time_max": body.get("ts_max"),
            "may_contain_duplicates": body.get("may_contain_pk_duplicates", True),
        }
        chunk = _chunk(f"{text}#{seen[text]}", values, context)
        return chunk_exec(chunk, context.table.column_names)

    others: dict[str, Any] = {"ChunkExec": one_chunk}
    for name in ("SomeExec", "SomeExec1", "SomeExec2", "SomeExec3"):
        schema = context.table.column_names
        others[name] = lambda _, name=name, schema=schema: SomeExec(name, schema)
    others["Union"] = lambda body: reader({"UnionExec": body})  # so the seed has it in places

    def reader(item: Any) -> ChunkPlan:
        return plan_from_data(item, context, chunks, others)

    return reader(data)


def _chunk(chunk_id: str, values: dict[str, Any], context: ChunkContext) -> Chunk:
    without = values.pop("without", [])
    lists = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    columns = tuple(f for f in context.table.columns if f.name not in without)
    return Chunk(chunk_id=chunk_id, columns=columns, **{"num_rows": 10, "num_bytes": 100, **lists})


def _leaves(data: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(data, list):
        for item in data:
            yield from _leaves(item)
    elif isinstance(data, dict):
        for name, body in data.items():
            if name in ("ParquetExec", "RecordBatchesExec"):
                yield name, body or {}
            else:
                yield from _leaves(body)


def _chunk_ids(body: dict[str, Any]) -> list[str]:
    return [*body.get("chunks", []), *(c for group in body.get("files", []) for c in group)]
