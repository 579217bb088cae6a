"""From a stage to its tasks: in, a snapshot and upstream manifests; out, task specs.

leaves of the stage ─▶ sizes ─▶ decisions, estimator ─▶ TaskSpec for each task
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from infra.catalog.snapshot import FileIdentity, Snapshot
from infra.runtime.adaptive.decision import Decision
from infra.runtime.adaptive.passing import TrialRule, with_trials
from infra.runtime.adaptive.ranges import output_order
from infra.runtime.adaptive.tasks import divide_stage, without_useless
from infra.runtime.bloom_steps import bloom_step
from infra.runtime.chunk_scans import ChunkScan, plan_chunk_scan
from infra.runtime.estimator import InputSizes, LeafSlice, SourceFile, TaskAssignment
from infra.runtime.key_pruning import KeyPruner
from infra.runtime.leaf_inputs import bind_leaves
from infra.runtime.prune_files import pruned_files
from infra.runtime.task_spec import InputSpec, TaskSettings, TaskSpec
from infra.settings import EngineSettings
from infra.shuffle.commit import load_blocks, load_index
from infra.shuffle.manifest import Manifest
from infra.shuffle.map_file import OutputPartitioning
from infra.shuffle.sorted_blocks import SortedBlocks
from infra.storage.object_store import ObjectStore
from infra.storage.stores import store_from_dict
from planner.errors import CatalogError
from planner.expressions import Literal
from planner.physical import DedupScanExec, ScanExec, StageInputExec
from planner.stages import Stage, StageGraph


@dataclass(frozen=True)
class _StageReads:
    """What a stage reads in a run: the sizes of its leaves, and what slices of them are bound to.

    Args:
        graph: The query.
        stage: The stage.
        snapshot: Files of its tables.
        manifests: Upstream manifests by stage number.
        parameters: Values of the query's parameters, by which files are left out, too.
    """

    graph: StageGraph
    stage: Stage
    snapshot: Snapshot
    manifests: Mapping[int, Manifest]
    parameters: Mapping[str, Literal]

    @cached_property
    def chunk_scans(self) -> dict[int, ChunkScan]:
        """The scans of deduplicated tables, by position of the leaf.

        Raises:
            CatalogError: A table is no longer what the plan was made for.
        """
        fragment, time_zone = self.stage.fragment, self.graph.time_zone
        return {
            position: plan_chunk_scan(
                fragment, leaf, self.snapshot.table(leaf.table), self.parameters, time_zone
            )
            for position, leaf in enumerate(self.stage.leaves)
            if isinstance(leaf, DedupScanExec)
        }

    def sizes(self) -> InputSizes:
        """Sizes of everything that the stage's own filters do not rule out."""
        scans: dict[int, Sequence[SourceFile]] = {}
        partitions: dict[int, Sequence[int]] = {}
        map_files: dict[int, Sequence[int]] = {}
        fragment, time_zone = self.stage.fragment, self.graph.time_zone
        for position, leaf in enumerate(self.stage.leaves):
            if position in self.chunk_scans:
                scans[position] = self.chunk_scans[position].sources
            elif isinstance(leaf, ScanExec):
                table = self.snapshot.table(leaf.table)
                files = pruned_files(fragment, leaf, table, self.parameters, time_zone)
                scans[position] = [_source(f) for f in files]
            else:
                manifest = self.manifests[leaf.stage_id]
                partitions[position] = manifest.partition_bytes
                map_files[position] = [file.num_bytes for file in manifest.files]
        return InputSizes(scans, partitions, map_files)

    def pruned_sizes(
        self, settings: EngineSettings, store: ObjectStore, *, row_groups: bool = True
    ) -> tuple[InputSizes, list[Decision]]:
        """`sizes` without what the keys of finished build sides rule out, and what was decided.

        Args:
            settings: Whether anything is left out by keys.
            store: Where upstream output is.
            row_groups: Whether parts of files are left out, too.
        """
        sizes = self.sizes()
        if not settings.decides("prune"):
            return sizes, []
        pruner = KeyPruner(self.stage, self.snapshot, self.manifests, store, row_groups=row_groups)
        return pruner.prune(sizes)

    def bind(self, slices: Sequence[LeafSlice], time_zone: str) -> tuple[InputSpec, ...]:
        """What each leaf is bound to, given the slice of it that is read."""
        return bind_leaves(
            self.graph,
            self.stage,
            slices,
            self.snapshot,
            self.manifests,
            self.parameters,
            time_zone,
            self.chunk_scans,
        )


@dataclass(frozen=True)
class StageTasks:
    """The tasks of a stage.

    Args:
        specs: What each of them does, at least one.
        decisions: What was chosen by the sizes of the inputs.
    """

    specs: tuple[TaskSpec, ...]
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True)
class _InputIndexes:
    """What the indexes of a stage's inputs tell, by position of the leaf; read when asked for."""

    stage: Stage
    manifests: Mapping[int, Manifest]
    store: ObjectStore

    def file_bytes(self, position: int, partition: int) -> Sequence[int]:
        """Bytes of a partition in each map file."""
        leaf = self.stage.leaves[position]
        if not isinstance(leaf, StageInputExec):
            raise TypeError(f"a {type(leaf).__name__} has no map files")
        manifest = self.manifests[leaf.stage_id]
        index = load_index(self.store, manifest, partition, partition + 1)
        lengths: list[int] = index.column("length").to_pylist()
        return lengths

    def blocks(self, position: int) -> SortedBlocks | None:
        """Where the blocks of sorted map files lie; None where they are not known."""
        leaf = self.stage.leaves[position]
        if not isinstance(leaf, StageInputExec):
            return None
        return load_blocks(self.store, self.manifests[leaf.stage_id])


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
    reads = _StageReads(graph, stage, snapshot, manifests, parameters)
    store = store_from_dict(settings.store)
    sizes, pruned = reads.pruned_sizes(engine_settings, store)
    indexes = _InputIndexes(stage, manifests, store)
    divided = divide_stage(
        stage,
        sizes,
        engine_settings,
        is_head=stage is graph.head,
        parallelism=parallelism,
        file_bytes=indexes.file_bytes,
        blocks=indexes.blocks,
        is_local=store.is_local,
    )
    settings = replace(settings, num_readers=min(len(divided.tasks), parallelism))
    specs = _task_specs(reads, divided.tasks, sql=sql, fingerprint=fingerprint, settings=settings)
    if engine_settings.decides("passing"):
        rule = TrialRule(engine_settings.passing_share, row_sql)
        specs = with_trials(stage, specs, rule, snapshot, manifests)
    return StageTasks(specs, (*pruned, *divided.decisions))


def _task_specs(
    reads: _StageReads,
    assignments: Sequence[TaskAssignment],
    *,
    sql: str,
    fingerprint: str,
    settings: TaskSettings,
) -> tuple[TaskSpec, ...]:
    """The spec of each task: alike but for its number and for what it reads."""
    graph, stage = reads.graph, reads.stage
    types = tuple(f.dtype for f in stage.schema)
    order = None if stage is graph.head else output_order(stage)
    step = bloom_step(stage)
    return tuple(
        TaskSpec(
            query=graph.query,
            stage_id=stage.stage_id,
            fingerprint=fingerprint,
            task_index=index,
            sql=sql,
            inputs=reads.bind(assignment.slices, settings.time_zone),
            types=types,
            output=output_partitioning(stage),
            settings=settings,
            order=order,
            bloom=step,
        )
        for index, assignment in enumerate(assignments)
    )


def whole_leaves(
    graph: StageGraph,
    stage: Stage,
    snapshot: Snapshot,
    manifests: Mapping[int, Manifest],
    parameters: Mapping[str, Literal],
    *,
    settings: EngineSettings,
    store: ObjectStore,
) -> tuple[tuple[InputSpec, ...], tuple[Decision, ...]]:
    """All of each leaf of a stage, and what was decided.

    Args:
        graph: The query.
        stage: One of its stages.
        snapshot: Files of the tables.
        manifests: Upstream manifests by stage number.
        parameters: Values of the query's parameters.
        settings: Whether what cannot contribute a row is left out.
        store: Where upstream output is.
    """
    reads = _StageReads(graph, stage, snapshot, manifests, parameters)
    sizes, decisions = reads.pruned_sizes(settings, store, row_groups=False)
    if settings.decides("empty"):
        sizes, useless = without_useless(stage, sizes)
        decisions += useless
    slices = [sizes.whole(position) for position in range(len(stage.leaves))]
    slices = [
        sizes.empty(position)
        if settings.decides("empty") and sizes.reads_nothing(position, part)
        else part
        for position, part in enumerate(slices)
    ]
    return reads.bind(slices, graph.time_zone), tuple(decisions)


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
    folders = {folder for table in snapshot.tables.values() for folder in table.folders}
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
        verify_files=settings.verify_files,
        verify_pages=settings.verify_pages,
        verify_seconds=settings.verify_seconds,
    )


def _source(file: FileIdentity) -> SourceFile:
    # The snapshot has no bytes per row group; rows of one file are about equally wide.
    groups = tuple(
        (rows, file.num_bytes * rows // file.num_rows if file.num_rows else 0)
        for rows in file.row_groups
    )
    return SourceFile(file.uri, groups)
