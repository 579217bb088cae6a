"""Stage graphs and plans ↔ versioned JSON, exactly.

In: a `StageGraph`. Out: JSON text with sorted keys that loads back to an equal graph, names
included. Also the canonical form that plan hashes are made of.
Every class that may appear is listed here; nothing is pickled.
"""

from __future__ import annotations

import json
import math
from typing import Any

from planner import expressions, physical, stages, types
from planner.encoding import Json, encode
from planner.errors import GraphFormatError

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
