"""Compares a run with its plan, for its page and for `stagecoach explain --analyze`.

An `Analysis` holds numbers only; `text` and `page` show it. Actual numbers are those that were
counted, see `actual_rows`; the other operators of a fragment, which the engine runs as one query,
have estimates alone.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from stagecoach.assets.plans.estimates import FAR_OFF
from stagecoach.assets.report.actual_rows import actual_rows, per_task, task_metrics
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.planner.explain.describe import describe
from stagecoach.planner.explain.diagrams import edge_label, inputs_in_order
from stagecoach.planner.explain.display import exchange_text, stage_sql
from stagecoach.planner.plan.physical import StageInputExec
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.tree import walk

ANALYSIS_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A number that was estimated and, where somebody counted, the real one.

    Args:
        estimated: The planner's guess; None where it had none.
        actual: What was counted; None where nobody did.
        factor: How many times the estimate is too high (above 1) or too low (below 1); None where
            one of the two is unknown.
    """

    estimated: int | None
    actual: int | None
    factor: float | None = None

    @property
    def is_far_off(self) -> bool:
        """Whether the estimate is off by more than `FAR_OFF`."""
        return self.factor is not None and not 1 / FAR_OFF <= self.factor <= FAR_OFF

    @property
    def verdict(self) -> str:
        """Such as `28x too low`; empty where the estimate is close or unknown."""
        if self.factor is None or not self.is_far_off:
            return ""
        low = self.factor < 1
        times = 1 / self.factor if low else self.factor
        return f"{times:,.0f}x too {'low' if low else 'high'}"


@dataclass(frozen=True, kw_only=True)
class OperatorRun:
    """An operator of a stage: its line of text, and the rows that it gave."""

    depth: int
    line: str
    rows: Comparison


@dataclass(frozen=True, kw_only=True)
class TaskRun:
    """A task of a stage, as its report in the manifest has it.

    Args:
        started_at: By its machine's clock, seconds since 1970; 0 if unknown.
        seconds: From start to end.
        read_seconds: Of these, reading shuffles.
        write_seconds: Of these, writing.
        rows_out: Rows written.
        bytes_out: Stored bytes written.
        worker: Machine and process.
    """

    index: int
    started_at: float
    seconds: float
    read_seconds: float
    write_seconds: float
    rows_out: int
    bytes_out: int
    host: str
    pid: int
    peak_memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class StageRun:
    """A stage of the run.

    Args:
        stage: Its plan.
        exchange: Its output in words, and what its arrow in a diagram says.
        engine: What ran it, or had run it before.
        engine_reason: Why that engine.
        reused: Whether its output was there already.
        deferred: Why it left its work to the head stage, or None.
        problem: Why it failed, or None.
        missing: Whether it has not been run, at least not for this run.
        started_at: When its first task began (it itself where no task ran), seconds since 1970.
        seconds: From then to its commit.
        waited: Before its first task: for Spark to start, and for free slots.
        share: Its part of all task time of this run, 0 to 1.
        rows: Of its output.
        num_bytes: Estimated bytes in memory, actual bytes stored.
        partition_bytes: Stored bytes of each partition.
        skew: Largest partition by the median one; None for fewer than two partitions.
        decisions: What was decided by the real sizes of the inputs: which decision, and its text.
    """

    stage: Stage
    exchange: str
    label: str
    engine: str
    engine_reason: str
    reused: bool
    deferred: str | None
    started_at: float
    seconds: float
    waited: float
    share: float
    rows: Comparison
    num_bytes: Comparison
    partition_bytes: tuple[int, ...]
    skew: float | None
    tasks: tuple[TaskRun, ...]
    operators: tuple[OperatorRun, ...]
    sql: str
    inputs: tuple[int, ...] = field(default=())
    decisions: tuple[tuple[str, str], ...] = ()
    problem: str | None = None
    missing: bool = False

    @property
    def how(self) -> str:
        """`computed`, `reused`, `deferred`, `failed` or `not run`."""
        if self.problem is not None or self.missing:
            return "not run" if self.problem is None else "failed"
        return "deferred" if self.deferred else "reused" if self.reused else "computed"

    def task_seconds(self) -> tuple[float, float, float] | None:
        """Shortest, median and longest task; None where there is none."""
        times = [task.seconds for task in self.tasks]
        return (min(times), statistics.median(times), max(times)) if times else None


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A run of a query.

    Args:
        graph: The plan.
        run_id: The run.
        started_at: When it began, seconds since 1970.
        seconds: How long it took.
        num_rows: Rows of the result.
        stages: In the order of the plan.
    """

    graph: StageGraph
    run_id: str
    started_at: float
    seconds: float
    num_rows: int
    stages: tuple[StageRun, ...]

    @property
    def first_task_at(self) -> float:
        """When the first task of the run began, seconds since 1970; 0 where none did."""
        ran = (stage for stage in self.stages if not stage.reused)
        return min((t.started_at for s in ran for t in s.tasks if t.started_at), default=0.0)

    @property
    def waited(self) -> float:
        """Seconds before the first task: planning of the run, Spark's start where it was cold."""
        first = self.first_task_at
        return max(first - self.started_at, 0.0) if first else self.seconds

    @property
    def failed(self) -> tuple[StageRun, ...]:
        """The stages that failed."""
        return tuple(stage for stage in self.stages if stage.problem is not None)

    def far_off(self) -> list[tuple[StageRun, OperatorRun | None, Comparison]]:
        """Estimates that are off by more than `FAR_OFF`; no operator for a stage's bytes."""
        found: list[tuple[StageRun, OperatorRun | None, Comparison]] = []
        for stage in self.stages:
            found += [(stage, op, op.rows) for op in stage.operators if op.rows.is_far_off]
            if not stage.operators and stage.rows.is_far_off:
                found.append((stage, None, stage.rows))
        return found


class FinishedRun(Protocol):
    """What there must be of a run whose head stage has ended, or that failed."""

    @property
    def graph(self) -> StageGraph:
        """The plan that was run."""
        ...

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    @property
    def stages(self) -> Sequence[StageMetadata | None]:
        """What each stage tells about itself, in the order of the plan; None if it did not run."""
        ...

    @property
    def num_rows(self) -> int:
        """Rows of the result."""
        ...

    def manifest(self, stage_id: int) -> Manifest | None:
        """The commit of a stage that was not deferred; None where it is gone."""
        ...


def analyze_result(
    result: FinishedRun,
    spans: Mapping[int, tuple[float, float]],
    started_at: float,
    seconds: float,
    problems: Mapping[int, str] = MappingProxyType({}),
) -> Analysis:
    """The analysis of a finished run.

    Args:
        result: The run.
        spans: Start and end of each stage, seconds since 1970.
        started_at: When the run began, likewise.
        seconds: How long it took.
        problems: Why stages failed, by their number.

    Raises:
        StorageError: The output of a stage is gone.
    """
    found = {
        stage.stage_id: manifest
        for stage, metadata in zip(result.graph.stages, result.stages, strict=True)
        if metadata is not None
        and metadata.deferred is None
        and (manifest := result.manifest(stage.stage_id)) is not None
    }
    computed = [i for i in found if (told := result.stages[i]) is not None and not told.reused]
    total = sum(task["total_seconds"] for i in computed for task in task_metrics(found[i]))
    stages: list[StageRun] = []
    for stage in result.graph.stages:
        span = spans.get(stage.stage_id, (started_at, started_at))
        run = _stage_run(result, stage, found, span, total, stages)
        stages.append(replace(run, problem=problems.get(stage.stage_id)))
    return Analysis(
        graph=result.graph,
        run_id=result.run_id,
        started_at=started_at,
        seconds=seconds,
        num_rows=result.num_rows,
        stages=tuple(stages),
    )


def _stage_run(
    result: FinishedRun,
    stage: Stage,
    manifests: Mapping[int, Manifest],
    span: tuple[float, float],
    total: float,
    before: Sequence[StageRun],
) -> StageRun:
    graph, told = result.graph, result.stages[stage.stage_id]
    metadata = told or StageMetadata()
    manifest = manifests.get(stage.stage_id)
    tasks = () if manifest is None else _tasks(manifest)
    # Where Spark ran the whole query instead, the fragment's operators are not what was run.
    own = stage.sql is None and (manifest is None or manifest.fingerprint == metadata.fingerprint)
    whole = metadata.fallback_reason is not None and stage is graph.head
    operators = _operators(graph, stage, manifest, before) if own and not whole else ()
    engine = metadata.engine or stage.engine
    rows = None if manifest is None else manifest.num_rows
    stored = None if manifest is None else manifest.num_bytes
    busy = sum(task.seconds for task in tasks)
    reused = bool(metadata.reused)
    starts = [] if reused else [task.started_at for task in tasks if task.started_at]
    begun = min(starts, default=span[0])
    allowed = per_task(stage.fragment, len(tasks))
    return StageRun(
        stage=stage,
        exchange=exchange_text(stage),
        label=edge_label(stage),
        engine=engine,
        engine_reason=metadata.fallback_reason or stage.engine_reason,
        reused=reused,
        deferred=metadata.deferred,
        started_at=begun,
        seconds=max(span[1] - begun, 0.0),
        waited=max(begun - span[0], 0.0),
        share=busy / total if total and not reused else 0.0,
        rows=compared(stage.estimated_rows if stage.sql is None else None, rows, allowed),
        num_bytes=Comparison(estimated=stage.estimated_bytes or None, actual=stored),
        partition_bytes=() if manifest is None else manifest.partition_bytes,
        skew=metadata.skew if manifest is not None and manifest.num_partitions > 1 else None,
        tasks=tasks,
        operators=operators,
        sql=stage_sql(stage),
        inputs=tuple(inputs_in_order(stage)),
        decisions=() if manifest is None else _decisions(manifest),
        missing=told is None,
    )


def _tasks(manifest: Manifest) -> tuple[TaskRun, ...]:
    return tuple(
        TaskRun(
            index=index,
            # Manifests of before have no start times.
            started_at=float(task.get("started_at", 0.0)),
            seconds=float(task["total_seconds"]),
            read_seconds=float(task["read_seconds"]),
            write_seconds=float(task["write_seconds"]),
            rows_out=file.num_rows,
            bytes_out=file.num_bytes,
            host=str(task["host"]),
            pid=int(task["pid"]),
            peak_memory_bytes=int(task["peak_memory_bytes"]),
        )
        for index, (task, file) in enumerate(
            zip(task_metrics(manifest), manifest.files, strict=False)
        )
    )


def _decisions(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    return tuple((d["kind"], d["text"]) for d in manifest.metrics.get("adaptive", ()))


def _operators(
    graph: StageGraph, stage: Stage, manifest: Manifest | None, before: Sequence[StageRun]
) -> tuple[OperatorRun, ...]:
    nodes = list(walk(stage.fragment))
    said = {i: exchange_text(graph.stages[i]) for i in stage.inputs}
    texts = describe(stage.fragment, inputs=said)
    actual = actual_rows(nodes, manifest, {r.stage.stage_id: r.rows.actual for r in before})
    estimates = stage.operator_rows
    count = len(manifest.files) if manifest is not None else 1
    runs: list[OperatorRun] = []
    for position, (node, row) in enumerate(zip(nodes, texts, strict=True)):
        estimated = estimates[position] if position < len(estimates) else None
        found = compared(estimated, actual.get(position), per_task(node, count))
        if isinstance(node, StageInputExec):
            # Said where the rows come from; once is enough.
            found = Comparison(estimated=estimated, actual=actual.get(position))
        runs.append(OperatorRun(depth=row.depth, line=row.line, rows=found))
    return tuple(runs)


def compared(estimated: int | None, actual: int | None, allowed: int) -> Comparison:
    """The two numbers and how far they are apart.

    Args:
        estimated: The guess.
        actual: What was counted.
        allowed: How many times as many as estimated are right, too.
    """
    factor: float | None = None
    if estimated is not None and actual is not None:
        # No row and one row are the same to a plan.
        low, high = max(estimated, 1), max(estimated, 1) * allowed
        real = max(actual, 1)
        factor = low / real if real < low else high / real if real > high else 1.0
    return Comparison(estimated=estimated, actual=actual, factor=factor)
