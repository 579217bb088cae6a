"""The metadata of a stage that ran: numbers for plots, and the reasons in a few lines.

Its size is bounded. Decisions are made when an output is computed, so a reused stage shows those of
the run that computed it.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.assets.plans.estimates import is_far_off, planned_rows
from stagecoach.assets.report.actual_rows import per_task, task_metrics
from stagecoach.assets.report.analysis import compared
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage.layout import shuffle_prefix
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.explain.lineage import plain
from stagecoach.planner.plan.stages import Stage, StageGraph

# The runtime imports pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.runtime.stages.run_stage import StageResult

MAX_REASON = 300
MAX_TABLES = 20
_RUNTIME_FILTER = "runtime filter"
_TAKEN = "taken_over"


def stage_metadata(
    result: "StageResult", graph: StageGraph, snapshot: Snapshot, store: ObjectStore
) -> StageMetadata:
    """What the result of a stage tells.

    Args:
        result: How it ended.
        graph: Its query.
        snapshot: The tables that its run reads.
        store: Where its output is.
    """
    stage, manifest = graph.stages[result.stage_id], result.manifest
    versions = {t: v for t in stage.tables if (v := snapshot.table(t).version) is not None}
    recovered = "\n".join(result.recovered) or None
    if manifest is None:
        return StageMetadata(
            fingerprint=result.fingerprint,
            seconds=result.seconds,
            deferred=result.deferred,
            recovered=recovered,
            table_versions=versions or None,
        )
    rows = compared(
        stage.estimated_rows if stage.sql is None else None,
        manifest.num_rows,
        per_task(stage.fragment, len(manifest.files)),
    )
    num_bytes = _input_bytes(manifest)
    return StageMetadata(
        rows=manifest.num_rows,
        bytes=manifest.num_bytes,
        bytes_read=None if result.reused else num_bytes,
        tasks=len(manifest.files),
        taken_over=None if result.reused else manifest.metrics.get("incremental", {}).get(_TAKEN),
        partitions=manifest.num_partitions,
        skew=skew(manifest.partition_bytes),
        seconds=result.seconds,
        engine=result.engine or None,
        fallback_reason=result.fallback_reason,
        reused=result.reused,
        saved_bytes=num_bytes + manifest.num_bytes if result.reused else None,
        saved_seconds=computing_seconds(manifest) if result.reused else None,
        fingerprint=result.fingerprint,
        uri=store.uri(shuffle_prefix(result.fingerprint)),
        columns=result.columns,
        estimated_rows=rows.estimated,
        estimate_factor=rows.factor,
        estimate_warning=f"estimated rows are {rows.verdict}" if rows.verdict else None,
        decisions=decisions(graph, stage, result, manifest),
        table_versions=dict(list(versions.items())[:MAX_TABLES]) or None,
        plan_warning=plan_warning(graph, stage, snapshot),
        recovered=recovered,
    )


def skew(partition_bytes: Sequence[int]) -> float | None:
    """Bytes of the largest partition divided by the median of those that have any; None for none.

    Empty partitions are left out: few distinct keys are not skew.
    """
    sizes = [size for size in partition_bytes if size]
    return max(sizes) / statistics.median(sizes) if sizes else None


def computing_seconds(manifest: Manifest) -> float:
    """How long the stage took when its output was computed."""
    seconds = manifest.metrics.get("seconds")
    if seconds is not None:
        return float(seconds)
    # Older manifests know of the tasks only.
    tasks = [t for t in task_metrics(manifest) if t.get("started_at")]
    ends = [t["started_at"] + t["total_seconds"] for t in tasks]
    return float(max(ends) - min(t["started_at"] for t in tasks)) if tasks else 0.0


def plan_warning(graph: StageGraph, stage: Stage, snapshot: Snapshot) -> str | None:
    """Which base tables have far more or fewer rows than the plan of their readers was made for.

    The head stage tells it for the whole query: its asset is the one that people look at. Tables
    that queries publish are planned for the rows that these are expected to make, whatever is
    there, so another plan would be the same.

    Args:
        graph: The query.
        stage: The stage that tells it, of its own tables unless it is the head.
        snapshot: The tables of the run, which has those of its own stages only.
    """
    known = {name.lower() for name in snapshot.tables}
    told = graph.stages if stage is graph.head else (stage,)
    planned = {name: rows for s in told if s.tables for name, rows in planned_rows(s).items()}
    lines: list[str] = []
    for name, rows in sorted(planned.items()):
        if name.lower() not in known:
            continue
        table = snapshot.table(name)
        if table.version is None and is_far_off(rows, table.num_rows):
            lines.append(
                f"- `{table.table}` has {table.num_rows:,} rows; the plan was made for {rows:,}"
            )
    lines = lines[:MAX_TABLES]
    if not lines:
        return None
    advice = (
        "The result is right, but another plan may be faster: reload the code location; with "
        "compiled plans run `stagecoach compile` first. A plan that is kept all the same is in "
        f"`plans/{graph.query}/` of the storage, which may be removed."
    )
    return "\n".join([*lines, "", advice])


def decisions(graph: StageGraph, stage: Stage, result: "StageResult", manifest: Manifest) -> str:
    """Markdown: why this engine, this many tasks and these files, and what a filter came to."""
    lines = [
        _engine_line(stage, result),
        _task_line(manifest),
        *_scan_lines(manifest),
        *_filter_lines(graph, stage, manifest),
        *_adaptive_lines(manifest),
    ]
    if stage.output.reason and stage is not graph.head:
        lines.append(f"**output** {stage.output.kind}: {_clipped(stage.output.reason)}")
    return "\n".join(f"- {line}" for line in lines)


def _engine_line(stage: Stage, result: "StageResult") -> str:
    if result.fallback_reason:
        return f"**engine** {result.engine}, fell back: {_clipped(result.fallback_reason)}"
    return f"**engine** {result.engine}: {_clipped(stage.engine_reason)}"


def _task_line(manifest: Manifest) -> str:
    metrics, count = manifest.metrics, len(manifest.files)
    read = f"{_input_bytes(manifest):,} bytes of input"
    if "incremental" in metrics:
        return f"**tasks** {count}, one for each group of files; {read} were read"
    if manifest.engine == SPARK or "slots" not in metrics:
        return f"**tasks** {count}, as Spark divided {read}"
    if count == 1 and _input_bytes(manifest) < metrics["min_task_bytes"]:
        why = f"less than `min_task_bytes` ({metrics['min_task_bytes']:,})"
        return f"**tasks** 1 for {read}, {why}"
    aim = f"{metrics['slots']} slots"
    if not any(decision["kind"] == "rounds" for decision in metrics.get("adaptive", ())):
        aim += f", at most {metrics['target_task_bytes']:,} bytes a task"
    return f"**tasks** {count} for {read}: {aim}"


def _scan_lines(manifest: Manifest) -> Iterator[str]:
    scans: Sequence[Mapping[str, Any]] = manifest.metrics.get("inputs", {}).get("scans", ())
    useless = any(d["kind"] == "empty" for d in manifest.metrics.get("adaptive", ()))
    for scan in scans[:MAX_TABLES]:
        left_out = scan["of_files"] - scan["files"]
        if useless and not scan["files"]:
            yield f"**{plain(scan['table'])}** not read"
            continue
        why = f"; {left_out:,} left out, which no row of the filters is in" if left_out else ""
        read = f"{scan['files']:,} of {scan['of_files']:,} files"
        rows = f"{scan['rows']:,} of {scan['of_rows']:,} rows"
        compared = ""
        if (count := scan.get("compared_rows")) is not None and scan["rows"]:  # deduplicated
            share = 100 * count / scan["rows"]
            compared = f"; {count:,} of them ({share:.0f} %) compared to find each key's latest"
        yield f"**{plain(scan['table'])}** {read}, {rows}{compared}{why}"


def _filter_lines(graph: StageGraph, stage: Stage, manifest: Manifest) -> Iterator[str]:
    """What runtime filters came to: rows in and out, where the tasks counted them."""
    for number in stage.inputs:
        reason = graph.stages[number].output.reason
        if not reason.startswith(_RUNTIME_FILTER):
            continue
        scans = manifest.metrics.get("inputs", {}).get("scans", ())
        read = sum(scan["rows"] for scan in scans)
        effect = f"; of {read:,} rows read, {manifest.num_rows:,} came out" if read else ""
        yield f"**filter** by stage {number}: {_clipped(reason)}{effect}"


def _adaptive_lines(manifest: Manifest) -> Iterator[str]:
    """What was decided by the real sizes of the inputs."""
    for decision in manifest.metrics.get("adaptive", ()):
        yield f"**{decision['kind']}** {_clipped(decision['text'])}"


def _input_bytes(manifest: Manifest) -> int:
    return int(manifest.metrics.get("inputs", {}).get("bytes", 0))


def _clipped(reason: str) -> str:
    text = plain(" ".join(reason.split()))
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"
