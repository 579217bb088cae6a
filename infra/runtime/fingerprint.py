"""Fingerprints: in, a graph, parameters and a snapshot; out, the identity of each stage's output.

A pure function, so that any process computes the same ones. It covers everything that the output
may depend on: the fragment, the parameters it refers to, the files it reads, the fingerprints of
its inputs, the versions of formats and engines. Inputs enter by position, never by stage number.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from infra.catalog.snapshot import FileIdentity, Snapshot, TableSnapshot
from infra.runtime.chunk_scans import pruned_chunks
from infra.runtime.prune_files import pruned_files
from infra.shuffle.manifest import FORMAT_VERSION
from infra.shuffle.partitioner import PARTITIONER_VERSION
from planner.chunks.chunk import Chunk
from planner.encoding import encode
from planner.errors import ParameterError
from planner.expressions import Literal
from planner.physical import DedupScanExec, ScanExec
from planner.stages import Stage, StageGraph

_ENGINES = ("duckdb", "pyspark", "pyarrow")


def stage_fingerprints(
    graph: StageGraph,
    snapshot: Snapshot,
    parameters: Mapping[str, Literal],
    *,
    root_run_id: str,
    fresh: bool = False,
    stages: Collection[int] | None = None,
) -> Mapping[int, str]:
    """The fingerprint of every stage of a graph, by stage number.

    Args:
        graph: The plan.
        snapshot: Files of all tables that the stages read.
        parameters: Values of all parameters that its stages refer to.
        root_run_id: The run, or the one that it re-executes: part of the fingerprint of a stage
            that is not deterministic.
        fresh: Whether nothing of other runs may be reused; then it is part of all of them.
        stages: Which stages, with all that they read; all by default.

    Raises:
        ParameterError: A parameter has no value.
    """
    versions = {name: package_version(name) for name in _ENGINES}
    found: dict[int, str] = {}
    for stage in graph.stages:
        if stages is not None and stage.stage_id not in stages:
            continue
        bound_to_run = fresh or not stage.deterministic
        body = {
            "plan": stage.plan_hash,
            "parameters": _values(graph, stage, parameters),
            "leaves": [
                _read_files(graph, stage, leaf, snapshot, parameters)
                if isinstance(leaf, ScanExec)
                else found[leaf.stage_id]
                for leaf in stage.leaves
            ],
            "tables": {t.lower(): _all_files(snapshot.table(t)) for t in stage.sql_tables},
            "run": root_run_id if bound_to_run else None,
            "time_zone": graph.time_zone,
            "versions": {**versions, "format": FORMAT_VERSION, "partitioner": PARTITIONER_VERSION},
        }
        found[stage.stage_id] = digest(body)
    return found


def digest(body: Any) -> str:  # any JSON value
    """SHA-256 (64 hex digits) of plain data, the same whatever the order of keys."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def package_version(name: str) -> str:
    """The version of an installed package, looked up (in its files) once a process."""
    return version(name)


def _values(graph: StageGraph, stage: Stage, parameters: Mapping[str, Literal]) -> list[list[Any]]:
    # A query that is handed to Spark as text may refer to any of them.
    names = stage.parameters if stage.sql is None else tuple(p.name for p in graph.parameters)
    missing = [name for name in names if name not in parameters]
    if missing:
        raise ParameterError(f"query '{graph.query}': parameter '{missing[0]}' has no value")
    values = [(name, parameters[name]) for name in sorted(names)]
    return [[name, str(v.dtype), repr(v.value)] for name, v in values]


def _read_files(
    graph: StageGraph,
    stage: Stage,
    leaf: ScanExec,
    snapshot: Snapshot,
    parameters: Mapping[str, Literal],
) -> list[list[Any]]:
    """What a scan reads: files that hold no row for it may come and go."""
    table = snapshot.table(leaf.table)
    if isinstance(leaf, DedupScanExec):
        found = pruned_chunks(stage.fragment, leaf, table, parameters, graph.time_zone)
        return _described_chunks(table, found)
    files = pruned_files(stage.fragment, leaf, table, parameters, graph.time_zone)
    return _described(table, files)


def _all_files(table: TableSnapshot) -> list[list[Any]]:
    if table.dedup is not None:
        return _described_chunks(table, table.chunks)
    return _described(table, table.files)


def _described(table: TableSnapshot, files: Sequence[FileIdentity]) -> list[list[Any]]:
    columns = [[f.name, str(f.dtype)] for f in table.columns]
    return [columns, *([f.uri, f.num_bytes, f.version, f.footer_checksum] for f in files)]


def _described_chunks(table: TableSnapshot, chunks: Sequence[Chunk]) -> list[list[Any]]:
    """Chunks and what decides which of their rows are shown: key and roles, and the sequences."""
    columns = [[f.name, str(f.dtype)] for f in table.columns]
    files = [[c.uri, c.num_bytes, c.file_version, c.sequence] for c in chunks]
    return [columns, [encode(table.dedup)], *files]
