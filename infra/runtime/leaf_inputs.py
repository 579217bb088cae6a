"""What the leaves of a stage are bound to: in, slices of them; out, the inputs of a task's spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from infra.catalog.snapshot import FileIdentity, Snapshot, TableSnapshot
from infra.engines.inputs import FileRows, LeafColumn
from infra.runtime.chunk_scans import ChunkScan, whole_chunk_table
from infra.runtime.estimator import (
    FileRange,
    FileSlice,
    LeafSlice,
    PartitionPiece,
    PartitionRange,
    ScanSlice,
)
from infra.runtime.prune_files import Constants, row_group_test, table_constants
from infra.runtime.task_spec import InputSpec, ScanInput, ShuffleInput
from infra.shuffle.manifest import Manifest
from infra.shuffle.sorted_blocks import SortedRange
from planner.expressions import Literal
from planner.physical import ScanExec, StageInputExec
from planner.stages import Stage, StageGraph


def bind_leaves(
    graph: StageGraph,
    stage: Stage,
    slices: Sequence[LeafSlice],
    snapshot: Snapshot,
    manifests: Mapping[int, Manifest],
    parameters: Mapping[str, Literal],
    time_zone: str,
    chunk_scans: Mapping[int, ChunkScan] | None = None,
) -> tuple[InputSpec, ...]:
    """What each leaf of a stage is bound to, given the slice of it that is read."""
    bound: list[InputSpec] = []
    chunk_scans = chunk_scans or {}
    for position, (leaf, part) in enumerate(zip(stage.leaves, slices, strict=True)):
        if position in chunk_scans and isinstance(part, ScanSlice):
            bound.append(chunk_scans[position].bind(part))
        elif isinstance(leaf, ScanExec) and isinstance(part, ScanSlice):
            scan = _bind_scan(leaf, part, snapshot, time_zone)
            # DuckDB looks at the row groups of local files by itself.
            if any(file.local_path is None for file in scan.files):
                table = snapshot.table(leaf.table)
                test = row_group_test(stage.fragment, leaf, table, parameters, time_zone)
                scan = replace(scan, test=test)
            bound.append(scan)
        elif isinstance(leaf, StageInputExec) and not isinstance(part, ScanSlice):
            bound.append(_bind_shuffle(graph, leaf, part, manifests[leaf.stage_id]))
        else:
            raise TypeError(f"{type(part).__name__} is no slice of a {type(leaf).__name__}")
    return tuple(bound)


def whole_tables(graph: StageGraph, snapshot: Snapshot) -> dict[str, InputSpec]:
    """All tables of a query by name, with the columns that the plan was made for."""
    tables: dict[str, InputSpec] = {}
    for name, fields in graph.tables:
        table = snapshot.table(name)
        if table.dedup is not None:
            tables[name] = whole_chunk_table(table, fields)
            continue
        tables[name] = ScanInput(
            columns=tuple(LeafColumn(f.name, f.name, f.dtype) for f in fields),
            files=tuple(
                _rows(f, 0, f.num_rows, table_constants(table, f, graph.time_zone))
                for f in table.files
                if f.num_rows
            ),
        )
    return tables


def _bind_scan(leaf: ScanExec, part: ScanSlice, snapshot: Snapshot, time_zone: str) -> ScanInput:
    pairs = zip(leaf.outputs, leaf.source, strict=True)
    table = snapshot.table(leaf.table)
    known = {f.uri: f for f in table.files}
    return ScanInput(
        columns=tuple(LeafColumn(f"c{c.id}", source, c.dtype) for c, source in pairs),
        files=tuple(_slice_rows(table, known[s.uri], s, time_zone) for s in part.files),
    )


def _slice_rows(
    table: TableSnapshot, file: FileIdentity, part: FileSlice, time_zone: str
) -> FileRows:
    constants = table_constants(table, file, time_zone)
    return _rows(file, part.row_start, part.row_end, constants)


def _rows(file: FileIdentity, start: int, end: int, constants: Constants) -> FileRows:
    return FileRows(
        file.uri,
        start,
        end,
        file.num_rows,
        file.num_bytes,
        file.version,
        constants,
        file.footer_checksum,
        file.checksums,
    )


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
