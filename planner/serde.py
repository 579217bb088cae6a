"""Stage graphs and plans ↔ versioned JSON, exactly.

In: a `StageGraph`. Out: JSON text with sorted keys that loads back to an equal graph, names
included. Also the canonical form that plan hashes are made of.
Every class that may appear is listed here; nothing is pickled.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from planner import expressions, physical, stages, types
from planner.errors import GraphFormatError

Json = None | bool | int | float | str | list[Any] | dict[str, Any]

_CLASSES: tuple[type[Any], ...] = (
    types.DataType,
    types.Field,
    expressions.Column,
    expressions.ColumnRef,
    expressions.Literal,
    expressions.Parameter,
    expressions.Call,
    expressions.Cast,
    expressions.AggregateCall,
    expressions.SortKey,
    physical.OneRowExec,
    physical.ScanExec,
    physical.StageInputExec,
    physical.FilterExec,
    physical.ProjectionExec,
    physical.AggregateExec,
    physical.SortExec,
    physical.SortPreservingMergeExec,
    physical.LimitExec,
    physical.HashJoinExec,
    physical.UnionExec,
    stages.Branch,
    stages.StageOutput,
    stages.Stage,
    stages.ParameterSpec,
    stages.StageGraph,
)
_BY_NAME = {cls.__name__: cls for cls in _CLASSES}
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def encode(value: object, *, names: bool = True) -> Json:
    """Plain JSON data for a plan value.

    Args:
        value: A plan node, expression, type, or tuple of such.
        names: Whether display names (fields that do not take part in comparisons) are kept.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple):
        return [encode(item, names=names) for item in value]
    if isinstance(value, types.DataType):
        return {"type": str(value)} if value.is_atomic else _encode_fields(value, names)
    if type(value) in _CLASSES:
        return _encode_fields(value, names)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _encode_fields(value: Any, names: bool) -> dict[str, Any]:
    fields = (f for f in dataclasses.fields(value) if names or f.compare)
    body = {f.name: encode(getattr(value, f.name), names=names) for f in fields}
    return {"node": type(value).__name__, **body}


def decode(data: Json) -> Any:
    """The plan value that `encode` wrote.

    Raises:
        GraphFormatError: For a class or field that this version does not know.
    """
    if isinstance(data, list):
        return tuple(decode(item) for item in data)
    if not isinstance(data, dict):
        return data
    if "float" in data:
        return _NON_FINITE[data["float"]]
    if "type" in data and "node" not in data:
        return types.parse_type(data["type"])
    cls = _BY_NAME.get(data.get("node", ""))
    if cls is None:
        raise GraphFormatError(f"stage graph holds an unknown node '{data.get('node')}'")
    try:
        return cls(**{k: decode(v) for k, v in data.items() if k != "node"})
    except TypeError as error:
        raise GraphFormatError(f"stage graph holds a damaged {cls.__name__}: {error}") from error


def canonical_stage(stage: stages.Stage) -> Json:
    """What a stage computes, without names, numbers of stages and estimates."""
    fragment = encode(stage.fragment, names=False)
    _forget_stage_ids(fragment)
    return {
        "fragment": fragment,
        "branches": encode(stage.branches),
        "output": encode(stage.output),
        "types": [str(f.dtype) for f in stage.schema],
        "engine": stage.engine,
        "sql": stage.sql,
        "deterministic": stage.deterministic,
        "planner": stages.PLANNER_VERSION,
    }


def _forget_stage_ids(data: Json) -> None:
    stack = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if item.get("node") == "StageInputExec":
                del item["stage_id"]
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def dump_graph(graph: stages.StageGraph, *, indent: int | None = None) -> str:
    """The graph as JSON text."""
    body = {"format_version": stages.FORMAT_VERSION, "graph": encode(graph)}
    return json.dumps(body, sort_keys=True, indent=indent, ensure_ascii=False)


def load_graph(text: str) -> stages.StageGraph:
    """The graph that `dump_graph` wrote.

    Raises:
        GraphFormatError: For text that is not such a graph, or of another format version.
    """
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        raise GraphFormatError(f"stage graph is not JSON: {error}") from error
    version = body.get("format_version") if isinstance(body, dict) else None
    if version != stages.FORMAT_VERSION:
        raise GraphFormatError(
            f"stage graph has format version {version}, this Stagecoach reads "
            f"{stages.FORMAT_VERSION}; compile the query again"
        )
    graph = decode(body["graph"])
    if not isinstance(graph, stages.StageGraph):
        raise GraphFormatError("the file holds no stage graph")
    return graph
