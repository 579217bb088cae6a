"""Runs checks of a query: each is a query for the rows that fail it.

They read the published table or what is staged of it. What they find becomes results of Dagster's
asset checks.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import dagster as dg
import pyarrow as pa

from stagecoach.assets.execution.engine import HasRows, StageRequest, StageRunner
from stagecoach.assets.execution.requests import run_parameters
from stagecoach.assets.plans.check_sql import MAX_FAILING_ROWS
from stagecoach.assets.plans.checks import PlannedCheck
from stagecoach.assets.project.front_matter import Partitions, StaticPartitions
from stagecoach.assets.project.front_matter.checks import Check
from stagecoach.assets.project.partitions import RunWindow, run_window
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import NAMESPACE

SAMPLE_ROWS = 5
REPLAY = f"{NAMESPACE}/replay"
"""Metadata of a failed check: the command that shows where the failing rows come from."""
MAX_CELL_CHARACTERS = 200
_NONE: Mapping[str, str] = MappingProxyType({})


def cut(text: str) -> str:
    """The text, its end left out where it is long."""
    return text if len(text) <= MAX_CELL_CHARACTERS else f"{text[:MAX_CELL_CHARACTERS]}…"


def to_check_result(
    check: Check, key: dg.AssetKey, rows: pa.Table, run_id: str = ""
) -> dg.AssetCheckResult:
    """What a check reports: how many rows failed it and some of them, or how many rows there are.

    Args:
        check: The check.
        key: Asset of the query's result.
        rows: The rows that fail it.
        run_id: The run that made the result, by which `stagecoach replay` finds it; empty if it is
            not known.
    """
    found = rows.num_rows
    metadata: dict[str, dg.MetadataValue[Any]] = {}
    if check.kind == "row_count":
        counts = rows.column(0).to_pylist()  # one for each key of a list of partitions
        text = ", ".join(_many(n, "row") for n in counts) or "as many rows as there should be"
        if found:
            metadata[f"{NAMESPACE}/rows"] = dg.MetadataValue.int(sum(counts))
    else:
        failing, text = _failing(check, rows)
        metadata[f"{NAMESPACE}/failing_rows"] = dg.MetadataValue.int(failing)
    if found and check.kind != "row_count":
        sample = markdown_rows(rows.slice(0, SAMPLE_ROWS))
        metadata[f"{NAMESPACE}/sample"] = dg.MetadataValue.md(sample)
        if run_id:
            command = f"stagecoach replay {run_id} --check {check.check_name}"
            metadata[REPLAY] = dg.MetadataValue.text(command)
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=check.check_name,
        passed=not found,
        severity=(
            dg.AssetCheckSeverity.WARN if check.severity == "warn" else dg.AssetCheckSeverity.ERROR
        ),
        description=text,
        metadata=metadata,
    )


def _failing(check: Check, rows: pa.Table) -> tuple[int, str]:
    """How many rows fail a check, and the same in words; a row may stand for several."""
    found = rows.num_rows
    if not found:
        return 0, "no row fails the check"
    least = "at least " if found >= MAX_FAILING_ROWS else ""
    what = {"unique": "key", "accepted_values": "value"}.get(check.kind)
    if what is None:
        return found, f"{least}{_many(found, 'row')} {_verb(found)} the check"
    failing = sum(rows.column(rows.num_columns - 1).to_pylist())
    said = f"{least}{_many(failing, 'row')} {_verb(failing)} the check, of {_many(found, what)}"
    return failing, said


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _verb(count: int) -> str:
    return "fails" if count == 1 else "fail"


def replayed_run(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, query: Query
) -> str:
    """The name of a run of a query in storage, as `stagecoach replay` takes it."""
    run = context.run
    return run.run_id if run.job_name == query.job_name else f"{run.run_id}.{query.name}"


def markdown_rows(rows: pa.Table) -> str:
    """Rows as a table in Markdown, long values cut."""
    names = [_cell(name) for name in rows.column_names]
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    columns = [column.to_pylist() for column in rows.columns]
    for position in range(rows.num_rows):
        values = (_cell(column[position]) for column in columns)
        lines.append(f"| {' | '.join(values)} |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return cut(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def failing_rows(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    query: Query,
    planned: PlannedCheck,
    runner: StageRunner,
    staged: Mapping[str, str] = _NONE,
) -> pa.Table:
    """The rows that fail a check; those of each key of a list, one key after the other.

    Args:
        context: Of the step.
        query: The query.
        planned: Its check.
        runner: What runs the check.
        staged: What is read of tables as it is staged; see `StageRequest`.

    Raises:
        StagecoachError: The check could not be evaluated.
    """
    if not isinstance(runner, HasRows):
        raise dg.Failure(f"{type(runner).__name__} cannot run checks: it returns no rows")
    found = [
        runner.first_rows(request, MAX_FAILING_ROWS)
        for request in _requests(context, query, planned, staged)
    ]
    return pa.concat_tables(found).slice(0, MAX_FAILING_ROWS)


def _requests(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    query: Query,
    planned: PlannedCheck,
    staged: Mapping[str, str],
) -> Iterator[StageRequest]:
    partitions = query.front_matter.partitions
    window = run_window(context.op_execution_context, partitions)
    for number, part in enumerate(_parts(window, partitions)):
        run_id = f"{context.run.run_id}.{planned.graph.query}.{number}"
        if staged:
            # Each try reads what is staged then: its files may be others than those before.
            run_id = f"{run_id}.{context.op_execution_context.retry_number}"
        yield StageRequest(
            graph=planned.graph,
            stage_id=planned.graph.head.stage_id,
            run_id=run_id,
            root_run_id=run_id,
            parameters=run_parameters(planned.graph, context.run, part, partitions, alone=False),
            staged=staged,
        )


def _parts(window: RunWindow | None, partitions: Partitions | None) -> Sequence[RunWindow | None]:
    """A range of windows is one query; a list of keys is one a key."""
    if window is not None and isinstance(partitions, StaticPartitions):
        return [RunWindow(keys=(key,)) for key in window.keys]
    return [window]
