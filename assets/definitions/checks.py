"""Checks of a query's result as Dagster asset checks: one step for all checks of a query.

They run after the head stage. A check is a query for the rows that fail it, planned and run like
any other, on the published table.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from stagecoach.assets.execution.engine import ENGINE_RESOURCE, HasRows, StageRequest, StageRunner
from stagecoach.assets.execution.requests import run_parameters
from stagecoach.assets.plans.check_sql import MAX_FAILING_ROWS
from stagecoach.assets.plans.checks import PlannedCheck
from stagecoach.assets.project.front_matter import Partitions, StaticPartitions
from stagecoach.assets.project.front_matter.checks import (
    AcceptedValuesCheck,
    Check,
    FreshnessCheck,
    NoRowsCheck,
    NotNullCheck,
    RowCountCheck,
    UniqueCheck,
)
from stagecoach.assets.project.partitions import RunWindow, run_window
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import NAMESPACE

SAMPLE_ROWS = 5
MAX_CELL_CHARACTERS = 200


def build_checks(
    query: Query, key: dg.AssetKey, checks: Sequence[PlannedCheck]
) -> dg.AssetChecksDefinition | None:
    """The step that runs the checks of a query; None where it has none about rows.

    Args:
        query: The query.
        key: Asset of its result.
        checks: Its planned checks.
    """
    if not checks:
        return None
    by_name = {planned.check.check_name: planned for planned in checks}
    specs = [
        dg.AssetCheckSpec(
            name,
            asset=key,
            description=describe(planned.check, query.table),
            blocking=planned.check.is_blocking,
            metadata={f"{NAMESPACE}/sql": dg.MetadataValue.md(f"```sql\n{planned.sql}\n```")},
        )
        for name, planned in by_name.items()
    ]

    @dg.multi_asset_check(
        name=f"{query.name}__checks",
        specs=specs,
        can_subset=True,
        required_resource_keys={ENGINE_RESOURCE},
        pool=query.front_matter.pool,
    )
    def run(context: dg.AssetCheckExecutionContext) -> "Iterator[dg.AssetCheckResult]":
        runner: StageRunner = getattr(context.resources, ENGINE_RESOURCE)
        selected = {k.name for k in context.selected_asset_check_keys}
        for name in (name for name in by_name if name in selected):
            rows = _failing_rows(context, query, by_name[name], runner)
            yield to_check_result(by_name[name].check, key, rows)

    return run


def describe(check: Check, table: str) -> str:
    """What a check asks of a table, in one line."""
    names = ", ".join(f"`{name}`" for _, name in check.columns)
    match check:
        case NotNullCheck():
            return f"no NULL in {names} of `{table}`"
        case UniqueCheck():
            return f"no two rows of `{table}` are the same in {names}"
        case AcceptedValuesCheck(accepted_values=accepted):
            return f"{names} of `{table}` is one of {cut(', '.join(accepted.texts))}"
        case RowCountCheck(row_count=bounds):
            least = [] if bounds.min is None else [f"at least {bounds.min:,}"]
            most = [] if bounds.max is None else [f"at most {bounds.max:,}"]
            return f"`{table}` has {' and '.join([*least, *most])} rows"
        case NoRowsCheck(no_rows=asked):
            return f"the query `{asked.name}` about `{table}` finds no rows"
        case FreshnessCheck(freshness=freshness):
            return f"`{table}` is not older than {freshness.within}"


def cut(text: str) -> str:
    """The text, its end left out where it is long."""
    return text if len(text) <= MAX_CELL_CHARACTERS else f"{text[:MAX_CELL_CHARACTERS]}…"


def to_check_result(check: Check, key: dg.AssetKey, rows: pa.Table) -> dg.AssetCheckResult:
    """What a check reports: how many rows failed it, and some of them."""
    found = rows.num_rows
    if check.kind == "row_count":
        (counted,) = rows.column(0).to_pylist() or (None,)
        text = f"{counted:,} rows" if counted is not None else "as many rows as there should be"
    else:
        number = f"at least {found:,}" if found >= MAX_FAILING_ROWS else f"{found:,}"
        text = f"{number} row(s) fail the check" if found else "no row fails the check"
    metadata: dict[str, dg.MetadataValue[Any]] = {
        f"{NAMESPACE}/failing_rows": dg.MetadataValue.int(found)
    }
    if found:
        sample = markdown_rows(rows.slice(0, SAMPLE_ROWS))
        metadata[f"{NAMESPACE}/sample"] = dg.MetadataValue.md(sample)
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


def _failing_rows(
    context: dg.AssetCheckExecutionContext,
    query: Query,
    planned: PlannedCheck,
    runner: StageRunner,
) -> pa.Table:
    """The rows that fail a check; those of each key of a list, one key after the other."""
    if not isinstance(runner, HasRows):
        raise dg.Failure(f"{type(runner).__name__} cannot run checks: it returns no rows")
    found = [
        runner.first_rows(request, MAX_FAILING_ROWS)
        for request in _requests(context, query, planned)
    ]
    return pa.concat_tables(found).slice(0, MAX_FAILING_ROWS)


def _requests(
    context: dg.AssetCheckExecutionContext, query: Query, planned: PlannedCheck
) -> Iterator[StageRequest]:
    partitions = query.front_matter.partitions
    window = run_window(context.op_execution_context, partitions)
    for number, part in enumerate(_parts(window, partitions)):
        run_id = f"{context.run.run_id}.{planned.graph.query}.{number}"
        yield StageRequest(
            graph=planned.graph,
            stage_id=planned.graph.head.stage_id,
            run_id=run_id,
            root_run_id=run_id,
            parameters=run_parameters(planned.graph, context.run, part, partitions, alone=False),
        )


def _parts(window: RunWindow | None, partitions: Partitions | None) -> Sequence[RunWindow | None]:
    """A range of windows is one query; a list of keys is one a key."""
    if window is not None and isinstance(partitions, StaticPartitions):
        return [RunWindow(keys=(key,)) for key in window.keys]
    return [window]
