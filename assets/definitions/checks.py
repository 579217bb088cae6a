"""Checks of a query's result as Dagster asset checks: one step for all checks of a query.

They run after the head stage, on the published table. The checks of a query whose results are
audited are part of its asset's own step instead (`execution.audit`).
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from stagecoach.assets.execution.check_runs import (
    cut,
    failing_rows,
    replayed_run,
    to_check_result,
)
from stagecoach.assets.execution.engine import ENGINE_RESOURCE, StageRunner
from stagecoach.assets.plans.checks import PlannedCheck
from stagecoach.assets.project.front_matter.checks import (
    AcceptedValuesCheck,
    Check,
    FreshnessCheck,
    NoRowsCheck,
    NotNullCheck,
    RowCountCheck,
    UniqueCheck,
)
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import NAMESPACE


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
    specs = check_specs(query, key, checks)

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
            rows = failing_rows(context, query, by_name[name], runner)
            run_id = replayed_run(context, query)
            yield to_check_result(by_name[name].check, key, rows, run_id)

    return run


def check_specs(
    query: Query, key: dg.AssetKey, checks: Sequence[PlannedCheck]
) -> Sequence[dg.AssetCheckSpec]:
    """How checks of a query look.

    Args:
        query: The query.
        key: Asset of its result.
        checks: Its planned checks.
    """
    return [
        dg.AssetCheckSpec(
            planned.check.check_name,
            asset=key,
            description=describe(planned.check, query.table),
            blocking=planned.check.is_blocking,
            metadata={f"{NAMESPACE}/sql": dg.MetadataValue.md(f"```sql\n{planned.sql}\n```")},
        )
        for planned in checks
    ]


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
