"""Reads chunk plans that people write as YAML, in the notation of `plan_to_yaml`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlglot
from sqlglot import exp

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    EmptyExec,
    FileGroup,
    FilterExec,
    ParquetExec,
    ProjectionExec,
    RecordBatchesExec,
    UnionExec,
)
from stagecoach.planner.plan.expressions import (
    TRUE,
    Call,
    Expression,
    Literal,
    call,
    conjoin,
    conjuncts,
)
from stagecoach.planner.types import BIGINT, BOOLEAN, DOUBLE, STRING

OtherExec = Callable[[Any], ChunkPlan]
"""Makes an operator that this module does not know from what stands below its name."""


def plan_from_data(
    data: Any,  # what a YAML reader gives
    context: ChunkContext,
    chunks: Mapping[str, Chunk],
    others: Mapping[str, OtherExec] | None = None,
) -> ChunkPlan:
    """The plan that `plan_to_data` wrote, or that a person did.

    Args:
        data: Plain data.
        context: The table.
        chunks: Chunks by id.
        others: Further operators by name.

    Raises:
        ValueError: The data is not a plan.
    """
    return _Reader(context, chunks, others or {}).node(data)


class _Reader:
    def __init__(
        self, context: ChunkContext, chunks: Mapping[str, Chunk], others: Mapping[str, OtherExec]
    ) -> None:
        self._context = context
        self._chunks = chunks
        self._others = others

    def node(self, data: Any) -> ChunkPlan:
        name, body = _named(data)
        if name in self._others:
            return self._others[name](body)
        match name:
            case "UnionExec":
                return UnionExec(tuple(self.node(child) for child in body))
            case "FilterExec":
                return FilterExec(self._child(body), read_predicate(body["expr"], self._context))
            case "ProjectionExec":
                return ProjectionExec(self._child(body), _names(body["keep"]))
            case "DeduplicateExec":
                key = self._context.table.primary_key
                if isinstance(body, dict) and "key" in body:
                    key = _names(body["key"])
                fused = isinstance(body, dict) and bool(body.get("fused"))
                return DeduplicateExec(self._child(body), key, fused)
            case "EmptyExec":
                return EmptyExec(self._schema((body or {}).get("schema")))
            case "RecordBatchesExec":
                batches = tuple(self._chunks[c] for c in body.get("chunks", ()))
                return RecordBatchesExec(batches, self._schema(body.get("schema")))
            case "ParquetExec":
                return self._parquet(body)
        raise ValueError(f"'{name}' is not an operator over chunks")

    def _child(self, body: Any) -> ChunkPlan:
        below = body["child"] if isinstance(body, dict) and "child" in body else body
        return self.node(below)

    def _schema(self, text: str | None) -> tuple[str, ...]:
        return self._context.table.column_names if text is None else _names(text)

    def _parquet(self, body: dict[str, Any]) -> ParquetExec:
        files = body.get("files", [body["chunks"]] if body.get("chunks") else [])
        orders = body.get("orders", [""] * len(files))
        groups = tuple(
            FileGroup(tuple(self._chunks[c] for c in group), _names(order))
            for group, order in zip(files, orders, strict=True)
        )
        predicate, projection = body.get("predicate"), body.get("projection")
        return ParquetExec(
            groups,
            self._schema(body.get("schema")),
            body.get("store", "file"),
            TRUE if predicate is None else read_predicate(predicate, self._context),
            None if projection is None else _names(projection),
        )


def _named(data: Any) -> tuple[str, Any]:
    """An operator's name and what stands below it."""
    if isinstance(data, str):
        return data, {}
    if isinstance(data, dict) and len(data) == 1:
        name, body = next(iter(data.items()))
        return name, {} if body is None else body
    raise ValueError(f"an operator is an object of one key, not {data!r}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_BINARY: dict[type[exp.Binary], str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.GT: "gt", exp.GTE: "ge", exp.LT: "lt", exp.LTE: "le",
    exp.NullSafeEQ: "eq_null_safe", exp.Or: "or",
}  # fmt: skip


def read_predicate(text: str, context: ChunkContext) -> Expression:
    """A predicate as a person writes it, over the table's columns; types are not coerced."""
    return _read(sqlglot.parse_one(text, dialect="spark"), context)


def _read(node: exp.Expr, context: ChunkContext) -> Expression:
    match node:
        case exp.Paren():
            return _read(node.this, context)
        case exp.Column():
            return context.ref(node.name)
        case exp.Boolean():
            return Literal(BOOLEAN, bool(node.this))
        case exp.Literal() if node.is_string:
            return Literal(STRING, node.this)
        case exp.Literal():
            whole = node.this.isdigit()
            return Literal(BIGINT if whole else DOUBLE, (int if whole else float)(node.this))
        case exp.Cast() if isinstance(node.this, exp.Literal):  # 1L
            return _read(node.this, context)
        case exp.Neg():
            inner = _read(node.this, context)
            if isinstance(inner, Literal) and isinstance(inner.value, int | float):
                return Literal(inner.dtype, -inner.value)
        case exp.And():
            parts = [p for a in (node.left, node.right) for p in conjuncts(_read(a, context))]
            return conjoin(parts)
        case exp.Not():
            return call("not", BOOLEAN, _read(node.this, context))
        case exp.Is():
            return call("is_null", BOOLEAN, _read(node.this, context))
        case exp.In():
            items = [node.this, *node.expressions]
            return Call(BOOLEAN, "in", tuple(_read(item, context) for item in items))
        case exp.Anonymous():
            args = tuple(_read(item, context) for item in node.expressions)
            return Call(BIGINT, node.name.lower(), args)
        case exp.Rand():
            return Call(DOUBLE, "rand", ())
        case exp.Binary() if type(node) in _BINARY:
            left, right = _read(node.left, context), _read(node.right, context)
            return call(_BINARY[type(node)], BOOLEAN, left, right)
    raise ValueError(f"'{node.sql()}' is not a predicate that can be read here")
