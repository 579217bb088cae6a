"""Write stage graphs as versioned JSON and read them back exactly.

Keys are sorted and display names are included. Every class that may appear is listed here; nothing
is pickled. An unknown field is an error. A missing field is an error too, except in a file of an
older format version, where a field that the version did not have takes its default.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stagecoach.planner import project_function, types
from stagecoach.planner.errors import GraphFormatError, InternalPlanError, SqlError
from stagecoach.planner.limits.deep_stack import on_deep_stack, run_deep
from stagecoach.planner.plan import expressions, physical, stages
from stagecoach.planner.plan.encoding import Json, encode, sparse_fields

_CLASSES: tuple[type[Any], ...] = (
    types.DataType,
    types.Field,
    expressions.Column,
    expressions.ColumnRef,
    expressions.Literal,
    expressions.Parameter,
    expressions.Call,
    project_function.ProjectFunction,
    expressions.ProjectCall,
    expressions.Cast,
    expressions.Lambda,
    expressions.AggregateCall,
    expressions.SortKey,
    expressions.FrameBound,
    expressions.WindowFrame,
    expressions.WindowCall,
    physical.OneRowExec,
    physical.ScanExec,
    physical.DedupScanExec,
    physical.StageInputExec,
    physical.FilterExec,
    physical.ProjectionExec,
    physical.AggregateExec,
    physical.SortExec,
    physical.SortPreservingMergeExec,
    physical.LimitExec,
    physical.RepartitionExec,
    physical.HashJoinExec,
    physical.UnionExec,
    physical.WindowExec,
    physical.GenerateExec,
    physical.ValuesExec,
    physical.RangeExec,
    physical.ExpandExec,
    physical.BloomBuildExec,
    physical.BloomProbeExec,
    stages.Branch,
    stages.StageOutput,
    stages.Stage,
    stages.ParameterSpec,
    stages.StageGraph,
)
_BY_NAME = {cls.__name__: cls for cls in _CLASSES}
READABLE_VERSIONS = (1, stages.FORMAT_VERSION)
_BODY_KEYS = frozenset({"checksum", "format_version", "graph", "compiled"})
NO_CHECKSUM = "0" * 16
"""What stands for the checksum of a text while that is computed."""
_SEAL = re.compile(r'\{\s*"checksum": "([0-9a-f]{16})"')
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


_FIELDS: dict[type[Any], frozenset[str]] = {}


def _fields(cls: type[Any]) -> frozenset[str]:
    if cls not in _FIELDS:
        _FIELDS[cls] = frozenset(f.name for f in dataclasses.fields(cls))
    return _FIELDS[cls]


def decode(
    data: Json,
    version: int = stages.FORMAT_VERSION,
    classes: Mapping[str, type[Any]] = _BY_NAME,
) -> Any:
    """The plan value that `encode` wrote.

    Args:
        data: Plain JSON data.
        version: Format version that it was written in, one of `READABLE_VERSIONS`.
        classes: Classes that may appear, by name: those of plans, or others' own
            (`stored_classes`).

    Raises:
        GraphFormatError: For a class or field that this version does not know, or misses.
    """
    if isinstance(data, list):
        return tuple([decode(item, version, classes) for item in data])
    if not isinstance(data, dict):
        return data
    if "node" not in data:
        return _decode_plain(data)
    cls = classes.get(str(data["node"]))
    if cls is None:
        raise GraphFormatError(f"stage graph holds an unknown node '{data['node']}'")
    fields = _fields(cls)
    given = {key: value for key, value in data.items() if key != "node"}
    if given.keys() != fields:
        _check_fields(cls, given, version)
    try:
        return cls(**{key: decode(value, version, classes) for key, value in given.items()})
    except (TypeError, ValueError, AttributeError, InternalPlanError) as error:
        raise GraphFormatError(f"stage graph holds a damaged {cls.__name__}: {error}") from error


def stored_classes(*classes: type[Any]) -> Mapping[str, type[Any]]:
    """These classes and those of plans, for `decode`."""
    return {**_BY_NAME, **{cls.__name__: cls for cls in classes}}


def _check_fields(cls: type[Any], given: Mapping[str, Json], version: int) -> None:
    fields = _fields(cls)
    if unknown := sorted(given.keys() - fields):
        raise GraphFormatError(
            f"stage graph holds a {cls.__name__} with the unknown field '{unknown[0]}'; "
            "a newer Stagecoach may have written it: compile the query again"
        )
    missing = sorted(fields - given.keys() - sparse_fields(cls).keys())
    if missing and version == stages.FORMAT_VERSION:
        raise GraphFormatError(
            f"stage graph holds a damaged {cls.__name__}: it has no field '{missing[0]}'"
        )


def _decode_plain(data: dict[str, Any]) -> Any:
    """A type or a number that is no JSON number: objects of one key."""
    if data.keys() == {"float"} and data["float"] in _NON_FINITE:
        return _NON_FINITE[data["float"]]
    if data.keys() == {"type"}:
        try:
            return types.parse_column_type(data["type"])
        except (SqlError, ValueError, TypeError) as error:
            raise GraphFormatError(
                f"stage graph holds an unknown type '{data['type']}': {error}"
            ) from error
    raise GraphFormatError(f"stage graph holds an unknown object with {sorted(data) or 'no'} keys")


@on_deep_stack
def dump_graph(
    graph: stages.StageGraph,
    *,
    indent: int | None = None,
    compiled: Mapping[str, Json] | None = None,
) -> str:
    """The graph as JSON text.

    Args:
        graph: The graph.
        indent: Spaces of each level; None for one line.
        compiled: What else a compiled plan says about how it came to be; see `GraphFile`.
    """
    body: dict[str, Json] = {
        "checksum": NO_CHECKSUM,  # the first of all keys
        "format_version": stages.FORMAT_VERSION,
        "graph": encode(graph),
    }
    if compiled is not None:
        body["compiled"] = dict(compiled)
    return seal(json.dumps(body, sort_keys=True, indent=indent, ensure_ascii=False))


def seal(text: str) -> str:
    """The text of a graph with its checksum.

    Args:
        text: JSON whose first key is `checksum`: `NO_CHECKSUM`, or that of another text.
    """
    found = _SEAL.match(text)
    assert found is not None
    blank = text[: found.start(1)] + NO_CHECKSUM + text[found.end(1) :]
    return text[: found.start(1)] + _checksum(blank) + text[found.end(1) :]


def is_sealed(text: str) -> bool:
    """Whether a text has a checksum, be it right or not."""
    return _SEAL.match(text) is not None


def check_seal(text: str) -> None:
    """Check that a text is what `dump_graph` made, if it has a checksum.

    Raises:
        GraphFormatError: It is something else.
    """
    if is_sealed(text) and seal(text) != text:
        raise GraphFormatError(
            "checksum mismatch: the stage graph is damaged or was edited; compile the query again, "
            "or remove its line 'checksum' if the change is meant"
        )


def _checksum(text: str) -> str:
    # Line ends are those of whatever keeps the file.
    lines = text.replace("\r\n", "\n").removesuffix("\n")
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class GraphFile:
    """The JSON of a stage graph, not yet decoded.

    Args:
        text: All of it.
        version: Format version that it was written in, one of `READABLE_VERSIONS`.
        graph: The graph.
        compiled: What `dump_graph` was given as `compiled`; empty where it was given nothing.
    """

    text: str
    version: int
    graph: Json
    compiled: Mapping[str, Any]


@dataclass(frozen=True)
class StageReads:
    """What a stage reads, by its operators; see `Stage.inputs` and `Stage.tables`."""

    inputs: tuple[int, ...]
    tables: tuple[str, ...]


def load_graph(text: str) -> stages.StageGraph:
    """The graph that `dump_graph` wrote.

    Raises:
        GraphFormatError: For text that is not such a graph, or of another format version.
    """
    return decode_graph(parse_file(text))


def parse_file(text: str) -> GraphFile:
    """What `dump_graph` wrote, not yet decoded.

    Raises:
        GraphFormatError: For text that is not such a file, or of another format version.
    """
    try:
        body = _read_deep(lambda: json.loads(text))
    except ValueError as error:  # JSON that is none, or a number of too many digits
        raise GraphFormatError(
            f"this is not a compiled plan, or a part of it is missing (it is not JSON: {error}); "
            "write it with `stagecoach compile`"
        ) from error
    if not isinstance(body, dict) or "format_version" not in body:
        raise GraphFormatError("this is not a compiled plan; write it with `stagecoach compile`")
    version = body["format_version"]
    if type(version) is not int or version not in READABLE_VERSIONS:
        newer = type(version) is int and version > stages.FORMAT_VERSION
        readable = " and ".join(map(str, READABLE_VERSIONS))
        raise GraphFormatError(
            f"stage graph has format version {version}, this Stagecoach reads {readable}; "
            f"{'use a newer Stagecoach, or ' if newer else ''}compile the query again"
        )
    if unknown := sorted(body.keys() - _BODY_KEYS):
        raise GraphFormatError(f"stage graph file has the unknown field '{unknown[0]}'")
    check_seal(text)
    notes = body.get("compiled")
    compiled = notes if isinstance(notes, dict) else {}
    return GraphFile(text, version, body.get("graph"), compiled)


def decode_graph(file: GraphFile) -> stages.StageGraph:
    """The graph of a file.

    Raises:
        GraphFormatError: It is damaged.
    """
    graph = _read_deep(lambda: decode(file.graph, file.version))
    if not isinstance(graph, stages.StageGraph):
        raise GraphFormatError("the file does not contain a stage graph")
    return graph


def decode_later(file: GraphFile, reads: Sequence[StageReads]) -> stages.StageGraph:
    """The graph of a file, whose operators are decoded stage by stage when they are asked for.

    A damage of the operators is only found then, as a `GraphFormatError`.

    Args:
        file: The file.
        reads: What each stage reads.

    Raises:
        GraphFormatError: It is damaged, or does not have so many stages.
    """
    graph = file.graph
    given = graph.get("stages") if isinstance(graph, dict) else None
    if not isinstance(graph, dict) or not isinstance(given, list) or len(given) != len(reads):
        raise GraphFormatError("the file does not contain a stage graph, or one of other stages")
    found: list[stages.Stage] = []
    # The text, not its values: these are a hundred times as many objects.
    fragments = _Fragments(file.text)
    for number, (data, read) in enumerate(zip(given, reads, strict=True)):
        stage = decode({**data, "fragment": None} if isinstance(data, dict) else data, file.version)
        if not isinstance(stage, stages.Stage):
            raise GraphFormatError("the file does not contain a stage graph")
        fragment = partial(fragments.decode, number)
        found.append(stage.read_later(fragment, inputs=read.inputs, tables=read.tables))
    whole = decode({**graph, "stages": []}, file.version)
    if not isinstance(whole, stages.StageGraph):
        raise GraphFormatError("the file does not contain a stage graph")
    return dataclasses.replace(whole, stages=tuple(found))


def _read_deep(read: Callable[[], Any]) -> Any:
    try:
        return run_deep(read)
    except RecursionError:
        raise GraphFormatError("stage graph is nested too deeply to be read") from None


class _Fragments:
    """Operators of the stages of a file, parsed when the first of them are asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._file: GraphFile | None = None

    def decode(self, stage_id: int) -> physical.PhysicalPlan:
        if self._file is None:
            self._file = parse_file(self._text)
        file = self._file
        graph: Any = file.graph
        data = graph["stages"][stage_id]["fragment"]
        fragment = _read_deep(lambda: decode(data, file.version))
        if not isinstance(fragment, physical.PhysicalPlan):
            raise GraphFormatError(f"stage {stage_id} of the file holds no operators")
        return fragment
