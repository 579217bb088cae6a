"""Fingerprints: the identity of each stage's output in a run.

A pure function, so that any process computes the same ones. It covers everything that the output
may depend on: the fragment, the parameters it refers to, the files it reads, the fingerprints of
its inputs, the versions of formats and engines. Inputs enter by position, never by stage number.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import ScanRequest, scan_request
from stagecoach.infra.formats.snapshot import Snapshot, TableSnapshot
from stagecoach.infra.shuffle.manifest import FORMAT_VERSION
from stagecoach.infra.shuffle.partitioner import PARTITIONER_VERSION
from stagecoach.infra.spark.row_conf import row_conf
from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import Stage, StageGraph

_PACKAGES = ("duckdb", "pyspark", "pyarrow")
"""What computes rows: with another version, a result may be another one."""


def stage_fingerprints(
    graph: StageGraph,
    snapshot: Snapshot,
    parameters: Mapping[str, Literal],
    *,
    root_run_id: str,
    fresh: bool = False,
    stages: Collection[int] | None = None,
    spark_conf: Mapping[str, str] = MappingProxyType({}),
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
        spark_conf: The user's settings of Spark, which may have to run any stage in the end.

    Raises:
        ParameterError: A parameter has no value.
    """
    versions = computing_versions()
    conf = row_conf(spark_conf)
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
            "tables": {t.lower(): _scanned(snapshot.table(t)) for t in stage.sql_tables},
            "run": root_run_id if bound_to_run else None,
            "time_zone": graph.time_zone,
            "versions": versions,
            **({"spark_conf": conf} if conf else {}),
        }
        found[stage.stage_id] = digest(body)
    return found


def computing_versions() -> dict[str, str | int]:
    """The versions of all that the bytes of an output depend on."""
    versions = {name: package_version(name) for name in _PACKAGES}
    return {**versions, "format": FORMAT_VERSION, "partitioner": PARTITIONER_VERSION}


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
) -> list[Any]:
    """What a scan reads: files that hold no row for it may come and go."""
    table = snapshot.table(leaf.table)
    request = scan_request(stage.fragment, leaf, table.format, parameters, graph.time_zone)
    return _scanned(table, request)


def _scanned(table: TableSnapshot, request: ScanRequest | None = None) -> list[Any]:
    columns = [[f.name, str(f.dtype)] for f in table.columns]
    return [columns, *table_format(table.format).scanned(request, table)]
