"""From a stage to its tasks: in, a snapshot and upstream manifests; out, task specs.

leaves of the stage ─▶ sizes ─▶ decisions, estimator ─▶ TaskSpec for each task
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from infra.catalog.snapshot import FileIdentity, Snapshot, TableSnapshot
from infra.engines.inputs import FileRows, LeafColumn
from infra.runtime.adaptive.decision import Decision
from infra.runtime.adaptive.passing import TrialRule, with_trials
from infra.runtime.adaptive.ranges import output_order
from infra.runtime.adaptive.tasks import divide_stage, without_useless
from infra.runtime.bloom_steps import bloom_step
from infra.runtime.chunk_scans import ChunkScan, plan_chunk_scan, whole_chunk_table
from infra.runtime.estimator import (
    FileRange,
    FileSlice,
    InputSizes,
    LeafSlice,
    PartitionPiece,
    PartitionRange,
    ScanSlice,
    SourceFile,
)
from infra.runtime.key_pruning import KeyPruner
from infra.runtime.prune_files import Constants, pruned_files, table_constants
from infra.runtime.task_spec import InputSpec, ScanInput, ShuffleInput, TaskSettings, TaskSpec
from infra.settings import EngineSettings
from infra.shuffle.manifest import Manifest, load_blocks, load_index
from infra.shuffle.map_file import OutputPartitioning
from infra.shuffle.sorted_blocks import SortedBlocks, SortedRange
from infra.storage.object_store import ObjectStore, store_from_dict
from planner.errors import CatalogError
from planner.expressions import Literal
from planner.physical import DedupScanExec, ScanExec, StageInputExec
from planner.stages import Stage, StageGraph


def input_sizes(
    graph: StageGraph,
    stage: Stage,
    snapshot: Snapshot,
    manifests: Mapping[int, Manifest],
    parameters: Mapping[str, Literal],
    chunk_scans: Mapping[int, ChunkScan] | None = None,
) -> InputSizes:
    """Sizes of everything that a stage reads.

    Args:
        graph: The query.
        stage: The stage.
        snapshot: Files of its tables.
        manifests: Upstream manifests by stage number.
        parameters: Values of the query's parameters, by which files are left out, too.
        chunk_scans: Scans of deduplicated tables, by leaf.
    """
    scans: dict[int, Sequence[SourceFile]] = {}
    partitions: dict[int, Sequence[int]] = {}
    map_files: dict[int, Sequence[int]] = {}
    chunk_scans = chunk_scans or {}
    for position, leaf in enumerate(stage.leaves):
        if position in chunk_scans:
            scans[position] = chunk_scans[position].sources
        elif isinstance(leaf, ScanExec):
            table = snapshot.table(leaf.table)
            files = pruned_files(stage.fragment, leaf, table, parameters, graph.time_zone)
            scans[position] = [_source(f) for f in files]
        else:
            manifest = manifests[leaf.stage_id]
            partitions[position] = manifest.partition_bytes
            map_files[position] = [file.num_bytes for file in manifest.files]
    return InputSizes(scans, partitions, map_files)


def plan_chunk_scans(
    graph: StageGraph, stage: Stage, snapshot: Snapshot, parameters: Mapping[str, Literal]
) -> dict[int, ChunkScan]:
    """The scans of deduplicated tables among the leaves of a stage.

    Raises:
        CatalogError: A table is no longer what the plan was made for.
    """
    return {
        position: plan_chunk_scan(
            stage.fragment, leaf, snapshot.table(leaf.table), parameters, graph.time_zone
        )
        for position, leaf in enumerate(stage.leaves)
        if isinstance(leaf, DedupScanExec)
    }


@dataclass(frozen=True)
class StageTasks:
    """The tasks of a stage.

    Args:
        specs: What each of them does, at least one.
        decisions: What was chosen by the sizes of the inputs.
    """

    specs: tuple[TaskSpec, ...]
    decisions: tuple[Decision, ...] = ()


def build_specs(
    graph: StageGraph,
    stage: Stage,
    *,
    sql: str,
    fingerprint: str,
    snapshot: Snapshot,
    manifests: Mapping[int, Manifest],
    parameters: Mapping[str, Literal],
    settings: TaskSettings,
    engine_settings: EngineSettings,
    parallelism: int,
    row_sql: str | None = None,
) -> StageTasks:
    """The tasks of a stage.

    Args:
        graph: The query.
        stage: One of its stages.
        sql: The rendered fragment.
        fingerprint: Where the output goes.
        snapshot: Files of the tables.
        manifests: Upstream manifests by stage number.
        parameters: Values of the query's parameters.
        settings: What tasks need of the settings.
        engine_settings: Sizes of tasks, and what is decided by the sizes of inputs.
        parallelism: Task slots.
        row_sql: The form of the fragment that gives each row of its partial aggregate as a state
            of its own; None where there is none.

    Raises:
        CatalogError: A table is no longer what the plan was made for.
        ShuffleReadError: The index of a skewed input is lost.
    """
    chunk_scans = plan_chunk_scans(graph, stage, snapshot, parameters)
    sizes = input_sizes(graph, stage, snapshot, manifests, parameters, chunk_scans)
    store = store_from_dict(settings.store)
    pruned: list[Decision] = []
    if engine_settings.adaptive:
        sizes, pruned = KeyPruner(stage, snapshot, manifests, store).prune(sizes)

    def file_bytes(position: int, partition: int) -> Sequence[int]:
        leaf = stage.leaves[position]
        if not isinstance(leaf, StageInputExec):
            raise TypeError(f"a {type(leaf).__name__} has no map files")
        index = load_index(store, manifests[leaf.stage_id], partition, partition + 1)
        lengths: list[int] = index.column("length").to_pylist()
        return lengths

    def blocks(position: int) -> SortedBlocks | None:
        leaf = stage.leaves[position]
        if not isinstance(leaf, StageInputExec):
            return None
        return load_blocks(store, manifests[leaf.stage_id])

    divided = divide_stage(
        stage,
        sizes,
        engine_settings,
        is_head=stage is graph.head,
        parallelism=parallelism,
        file_bytes=file_bytes,
        blocks=blocks,
        is_local=store.is_local,
    )
    types = tuple(f.dtype for f in stage.schema)
    order = None if stage is graph.head else output_order(stage)
    step = bloom_step(stage)
    specs = tuple(
        TaskSpec(
            query=graph.query,
            stage_id=stage.stage_id,
            fingerprint=fingerprint,
            task_index=index,
            sql=sql,
            inputs=bind_leaves(
                graph,
                stage,
                assignment.slices,
                snapshot,
                manifests,
                settings.time_zone,
                chunk_scans,
            ),
            types=types,
            output=output_partitioning(stage),
            settings=settings,
            order=order,
            bloom=step,
        )
        for index, assignment in enumerate(divided.tasks)
    )
    if engine_settings.adaptive:
        rule = TrialRule(engine_settings.passing_share, row_sql)
        specs = with_trials(stage, specs, rule, snapshot, manifests)
    return StageTasks(specs, (*pruned, *divided.decisions))


def bind_leaves(
    graph: StageGraph,
    stage: Stage,
    slices: Sequence[LeafSlice],
    snapshot: Snapshot,
    manifests: Mapping[int, Manifest],
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
            bound.append(_bind_scan(leaf, part, snapshot, time_zone))
        elif isinstance(leaf, StageInputExec) and not isinstance(part, ScanSlice):
            bound.append(_bind_shuffle(graph, leaf, part, manifests[leaf.stage_id]))
        else:
            raise TypeError(f"{type(part).__name__} is no slice of a {type(leaf).__name__}")
    return tuple(bound)


def whole_leaves(
    graph: StageGraph,
    stage: Stage,
    snapshot: Snapshot,
    manifests: Mapping[int, Manifest],
    parameters: Mapping[str, Literal],
    *,
    adaptive: ObjectStore | None = None,
) -> tuple[tuple[InputSpec, ...], tuple[Decision, ...]]:
    """All of each leaf of a stage, and what was decided.

    Args:
        graph: The query.
        stage: One of its stages.
        snapshot: Files of the tables.
        manifests: Upstream manifests by stage number.
        parameters: Values of the query's parameters.
        adaptive: Where upstream output is, to leave out what cannot contribute a row; None leaves
            nothing out.
    """
    chunk_scans = plan_chunk_scans(graph, stage, snapshot, parameters)
    sizes = input_sizes(graph, stage, snapshot, manifests, parameters, chunk_scans)
    decisions: list[Decision] = []
    if adaptive is not None:
        pruner = KeyPruner(stage, snapshot, manifests, adaptive, row_groups=False)
        sizes, decisions = pruner.prune(sizes)
        sizes, useless = without_useless(stage, sizes)
        decisions += useless
    slices = [sizes.whole(position) for position in range(len(stage.leaves))]
    slices = [
        sizes.empty(position)
        if adaptive is not None and sizes.reads_nothing(position, part)
        else part
        for position, part in enumerate(slices)
    ]
    bound = bind_leaves(graph, stage, slices, snapshot, manifests, graph.time_zone, chunk_scans)
    return bound, tuple(decisions)


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


def check_tables(graph: StageGraph, snapshot: Snapshot, names: Collection[str]) -> None:
    """Look whether the tables still have the columns that the plan was made for.

    Args:
        graph: The plan.
        snapshot: The tables.
        names: Which of them are looked at.

    Raises:
        CatalogError: A column is gone or has another type.
    """
    known = {name.lower() for name in names}
    for name, fields in graph.tables:
        if name.lower() not in known:
            continue
        found = {f.name: f.dtype for f in snapshot.table(name).columns}
        for field in fields:
            if found.get(field.name) != field.dtype:
                now = found.get(field.name, "gone")
                raise CatalogError(
                    f"query '{graph.query}' was planned for column '{field.name}' of table "
                    f"'{name}' as {field.dtype}, which is {now} now; compile the query again"
                )


def output_partitioning(stage: Stage) -> OutputPartitioning:
    """How the output of a stage is divided, in the terms of the shuffle."""
    output = stage.output
    return OutputPartitioning(
        kind=output.kind, keys=output.keys, num_partitions=output.num_partitions
    )


def task_settings(
    settings: EngineSettings, store: ObjectStore, snapshot: Snapshot, time_zone: str
) -> TaskSettings:
    """What tasks need of the engine settings.

    The folders are those of all tables of the run, so that all its stages share a database.
    """
    folders = {
        _table_folder(file)
        for table in snapshot.tables.values()
        for file in table.files
        if "://" not in file.uri
    }
    return TaskSettings(
        store=store.to_dict(),
        time_zone=time_zone,
        memory_bytes=settings.task_memory_bytes,
        writer_memory_bytes=settings.writer_memory_bytes,
        reader_memory_bytes=settings.reader_memory_bytes,
        broadcast_cache_bytes=settings.broadcast_cache_bytes,
        max_spill_bytes=settings.max_spill_bytes,
        spill_dir=settings.spill_folder,
        codec=settings.codec,
        directories=tuple(sorted(folders)),
    )


def _table_folder(file: FileIdentity) -> str:
    """The folder of a local file, or the one above its partition folders."""
    folder = os.path.dirname(file.uri)
    for _ in file.partition:
        folder = os.path.dirname(folder)
    return folder


def _source(file: FileIdentity) -> SourceFile:
    # The snapshot has no bytes per row group; rows of one file are about equally wide.
    groups = tuple(
        (rows, file.num_bytes * rows // file.num_rows if file.num_rows else 0)
        for rows in file.row_groups
    )
    return SourceFile(file.uri, groups)


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
    return FileRows(file.uri, start, end, file.num_rows, file.num_bytes, file.version, constants)


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
