"""Binds the leaves of a stage to what they read: slices of them to the inputs of a task's spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stagecoach.infra.formats.protocol import ScanPlan
from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import whole_table
from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.infra.runtime.adaptive.estimator import (
    FileRange,
    LeafSlice,
    PartitionPiece,
    PartitionRange,
)
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.sorted_blocks import SortedRange
from stagecoach.infra.worker.spec import InputSpec, ShuffleInput
from stagecoach.planner.plan.physical import StageInputExec
from stagecoach.planner.plan.stages import Stage, StageGraph


def bind_leaves(
    graph: StageGraph,
    stage: Stage,
    slices: Sequence[LeafSlice],
    scans: Mapping[int, ScanPlan],
    manifests: Mapping[int, Manifest],
) -> tuple[InputSpec, ...]:
    """What each leaf of a stage is bound to, given the slice of it that is read."""
    bound: list[InputSpec] = []
    for position, (leaf, part) in enumerate(zip(stage.leaves, slices, strict=True)):
        if position in scans and isinstance(part, ScanSlice):
            bound.append(scans[position].bind(part))
        elif isinstance(leaf, StageInputExec) and not isinstance(part, ScanSlice):
            bound.append(_bind_shuffle(graph, leaf, part, manifests[leaf.stage_id]))
        else:
            raise TypeError(f"{type(part).__name__} is not a slice of a {type(leaf).__name__}")
    return tuple(bound)


def whole_tables(graph: StageGraph, snapshot: Snapshot) -> dict[str, InputSpec]:
    """All tables of a query by name, with the columns that the plan was made for."""
    tables: dict[str, InputSpec] = {}
    for name, fields in graph.tables:
        table = snapshot.table(name)
        found = table_format(table.format)
        request = whole_table(table.table, fields, graph.time_zone, found.unique_key(table))
        scan = found.plan_scan(request, table)
        units = tuple(unit for unit in scan.units if unit.num_rows)
        tables[name] = scan.bind(ScanSlice(units))
    return tables


def _bind_shuffle(
    graph: StageGraph,
    leaf: StageInputExec,
    part: PartitionRange | PartitionPiece | FileRange | SortedRange,
    manifest: Manifest,
) -> ShuffleInput:
    low, high = 0, manifest.num_partitions
    if isinstance(part, PartitionRange):
        low, high = part.low, part.high
    elif isinstance(part, PartitionPiece):
        low, high = part.partition, part.partition + 1
    whole = ShuffleInput(
        columns=tuple(LeafColumn(f"c{c.id}", "", c.dtype) for c in leaf.outputs),
        fingerprint=manifest.fingerprint,
        manifest_hash=manifest.manifest_hash,
        stage=f"{graph.query}/stage_{leaf.stage_id}",
        low=low,
        high=high,
    )
    if isinstance(part, PartitionRange):
        num_bytes = sum(manifest.partition_bytes[low:high])
        return replace(whole, num_bytes=num_bytes, shared=part.shared)
    if isinstance(part, SortedRange):
        return replace(whole, num_bytes=part.num_bytes, sorted_range=part)
    if isinstance(part, FileRange):
        return replace(whole, num_bytes=part.num_bytes, files=(part.low, part.high))
    piece = part.piece
    return replace(
        whole,
        num_bytes=piece.num_bytes,
        files=(piece.low, piece.high),
        share=(piece.index, piece.shares),
    )
