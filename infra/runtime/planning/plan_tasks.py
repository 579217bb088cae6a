"""Plans the tasks of a stage from its snapshot and the upstream manifests.

leaves of the stage ─▶ sizes ─▶ decisions, estimator ─▶ TaskSpec for each task
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.protocol import ScanPlan
from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import scan_request
from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.functions.function_set import NO_FUNCTIONS, FunctionSet
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.estimator import InputSizes, LeafSlice, TaskAssignment
from stagecoach.infra.runtime.adaptive.passing import TrialRule, with_trials
from stagecoach.infra.runtime.adaptive.ranges import output_order
from stagecoach.infra.runtime.adaptive.tasks import divide_stage, without_useless
from stagecoach.infra.runtime.planning.bloom_steps import bloom_step
from stagecoach.infra.runtime.planning.complete_groups import (
    complete_decision,
    complete_keys,
    range_variables,
)
from stagecoach.infra.runtime.planning.key_pruning import KeyPruner
from stagecoach.infra.runtime.planning.leaf_inputs import bind_leaves
from stagecoach.infra.shuffle.commit import load_blocks, load_index
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.shuffle.sorted_blocks import SortedBlocks
from stagecoach.infra.storage.forwarding import marked
from stagecoach.infra.storage.known_objects import KnownObjects
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.worker.spec import InputSpec, TaskSettings, TaskSpec
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.distribution.wide_tasks import leaves_build_side
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.plan.early_filters import complete_key
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import ScanExec, StageInputExec
from stagecoach.planner.plan.stages import Stage, StageGraph


@dataclass(frozen=True)
class StageReads:
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
    def scans(self) -> dict[int, ScanPlan]:
        """The scans, planned, by position of the leaf.

        Raises:
            CatalogError: A table is no longer what the plan was made for.
        """
        planned: dict[ScanExec, ScanPlan] = {}
        found: dict[int, ScanPlan] = {}
        for position, leaf in enumerate(self.stage.leaves):
            if isinstance(leaf, ScanExec):
                if leaf not in planned:
                    planned[leaf] = self._planned(leaf)
                found[position] = planned[leaf]
        return found

    def _planned(self, leaf: ScanExec) -> ScanPlan:
        table = self.snapshot.table(leaf.table)
        fragment, time_zone = self.stage.fragment, self.graph.time_zone
        request = scan_request(fragment, leaf, table.format, self.parameters, time_zone)
        return table_format(table.format).plan_scan(request, table)

    def sizes(self) -> InputSizes:
        """Sizes of everything that the stage's own filters do not rule out."""
        scans = {position: scan.units for position, scan in self.scans.items()}
        partitions: dict[int, Sequence[int]] = {}
        map_files: dict[int, Sequence[int]] = {}
        for position, leaf in enumerate(self.stage.leaves):
            if isinstance(leaf, StageInputExec):
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

    def bind(self, slices: Sequence[LeafSlice]) -> tuple[InputSpec, ...]:
        """What each leaf is bound to, given the slice of it that is read."""
        return bind_leaves(self.graph, self.stage, slices, self.scans, self.manifests)


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
        lengths = [0] * len(manifest.files)
        columns = (index.column(name).to_pylist() for name in ("file", "length"))
        for file, length in zip(*columns, strict=True):
            lengths[file] = length
        return lengths

    def blocks(self, position: int) -> SortedBlocks | None:
        """Where the blocks of sorted map files lie; None where they are not known."""
        leaf = self.stage.leaves[position]
        if not isinstance(leaf, StageInputExec):
            return None
        return load_blocks(self.store, self.manifests[leaf.stage_id])


def build_specs(
    reads: StageReads,
    settings: EngineSettings,
    store: ObjectStore,
    *,
    sql: str,
    fingerprint: str,
    parallelism: int,
    row_sql: str | None = None,
    functions: FunctionSet = NO_FUNCTIONS,
    threads: int = 1,
    known: Mapping[str, bytes] = MappingProxyType({}),
    in_groups: bool = False,
) -> StageTasks:
    """The tasks of a stage.

    Args:
        reads: The stage and what it reads.
        settings: Sizes of tasks, and what is decided by the sizes of inputs.
        store: Where outputs are.
        sql: The rendered fragment.
        fingerprint: Where the output goes.
        parallelism: Task slots.
        row_sql: The form of the fragment that gives each row of its partial aggregate as a state
            of its own; None where there is none.
        functions: Functions of the project that the fragment calls.
        threads: Cores that the engine of a task may use.
        known: Objects of `store` that need not be asked for, by key.
        in_groups: Whether each task reads a group of files, whose output later runs may take over.

    Raises:
        CatalogError: A table is no longer what the plan was made for.
        ShuffleReadError: The index of a skewed input is lost.
    """
    graph, stage, manifests = reads.graph, reads.stage, reads.manifests
    reading = KnownObjects(store, known)
    sizes, pruned = reads.pruned_sizes(settings, reading)
    indexes = _InputIndexes(stage, manifests, reading)
    divided = divide_stage(
        stage,
        sizes,
        settings,
        is_head=stage is graph.head,
        parallelism=parallelism,
        file_bytes=indexes.file_bytes,
        blocks=indexes.blocks,
        is_local=store.is_local,
        in_groups=in_groups,
    )
    of_tasks = task_settings(settings, store, reads.snapshot, graph.time_zone, functions, known)
    of_tasks = replace(
        of_tasks,
        num_readers=min(len(divided.tasks), parallelism),
        threads=threads,
        chooses_build_side=leaves_build_side(stage),
    )
    specs = _task_specs(reads, divided.tasks, sql=sql, fingerprint=fingerprint, settings=of_tasks)
    decisions = [*pruned, *divided.decisions]
    key = complete_key(stage.fragment)
    if key is not None and settings.decides("complete"):
        table = reads.snapshot.table(key[0].table)
        ranges = complete_keys(stage, key, table, divided.tasks, store)
        specs = tuple(
            replace(spec, variables=range_variables(ends))
            for spec, ends in zip(specs, ranges, strict=True)
        )
        complete = complete_decision(ranges)
        decisions += [] if complete is None else [complete]
    if settings.decides("passing"):
        rule = TrialRule(settings.passing_share, row_sql)
        specs = with_trials(stage, specs, rule, reads.snapshot, manifests)
    return StageTasks(specs, tuple(decisions))


def _task_specs(
    reads: StageReads,
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
            inputs=reads.bind(assignment.slices),
            types=types,
            output=output_partitioning(stage),
            settings=settings,
            order=order,
            bloom=step,
            engine=stage.engine,
        )
        for index, assignment in enumerate(assignments)
    )


def whole_leaves(
    reads: StageReads, settings: EngineSettings, store: ObjectStore
) -> tuple[tuple[InputSpec, ...], tuple[Decision, ...]]:
    """All of each leaf of a stage, and what was decided.

    Args:
        reads: The stage and what it reads.
        settings: Whether what cannot contribute a row is left out.
        store: Where upstream output is.
    """
    stage = reads.stage
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
    return reads.bind(slices), tuple(decisions)


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
    settings: EngineSettings,
    store: ObjectStore,
    snapshot: Snapshot,
    time_zone: str,
    functions: FunctionSet = NO_FUNCTIONS,
    known: Mapping[str, bytes] = MappingProxyType({}),
) -> TaskSettings:
    """What tasks need of the engine settings.

    The folders are those of all tables of the run, so that all its stages share a database.
    """
    folders = {folder for table in snapshot.tables.values() for folder in table.folders}
    return TaskSettings(
        store=marked(store.to_dict(), settings.credentials),
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
        functions=functions,
        known={key: b64encode(content).decode() for key, content in known.items()},
    )
