"""`stagecoach gc`: removes what no run and no result needs from storage."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import click

from stagecoach.api.session import DEFAULT_CATALOG
from stagecoach.arguments.ages import AgeType
from stagecoach.arguments.options import debug_option, storage_option
from stagecoach.planner.text.sizes import format_bytes
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stagecoach.infra.upkeep.gc import GcReport


@click.command()
@storage_option
@click.option(
    "--older-than",
    type=AgeType(),
    default="7d",
    show_default=True,
    metavar="AGE",
    help="Remove only what is older than this: a number with s, m, h, d or w.",
)
@click.option(
    "--run",
    "run_id",
    metavar="ID",
    help="Remove only what this run has left behind and no other run needs, regardless of age.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would be removed without removing anything."
)
@click.option(
    "--catalog",
    metavar="CATALOG.yaml",
    help="Clean its deduplicated tables as well: chunks that compactions have replaced.  "
    f"[default: {DEFAULT_CATALOG}, if there is one]",
)
@debug_option
def gc(
    storage: str | None,
    older_than: datetime.timedelta,
    run_id: str | None,
    dry_run: bool,
    catalog: str | None,
    debug: bool,
) -> None:
    """Remove expired shuffles, runs that are over, old plans, and what failed attempts left behind.

    Nothing is removed that a run of the last AGE, a run in progress or a published result needs.
    """
    from stagecoach.api.catalog_tables import catalog_tables
    from stagecoach.api.storage_root import open_storage
    from stagecoach.infra.upkeep.gc import collect_garbage
    from stagecoach.infra.upkeep.one_run import collect_run
    from stagecoach.infra.upkeep.table_gc import collect_table_garbage

    configure_logging(debug=debug)
    store = open_storage(storage)
    verb = "would remove" if dry_run else "removed"
    if run_id is not None:
        _refuse_with_run()
        for line in _lines(collect_run(store, run_id, dry_run=dry_run)):
            click.echo(f"{verb} {line}")
        return
    tables = [found for table in catalog_tables(catalog) if (found := table.expires())]
    report = collect_garbage(store, older_than=older_than, dry_run=dry_run)
    for line in _lines(report):
        click.echo(f"{verb} {line}")
    for expired in collect_table_garbage(store, tables, older_than=older_than, dry_run=dry_run):
        if not expired.is_empty:
            counts = ", ".join(f"{count} {sort}" for sort, count in expired.counts.items())
            size = format_bytes(expired.num_bytes)
            click.echo(f"{verb} {size} of table {expired.table_name}: {counts}")


def _refuse_with_run() -> None:
    """Refuse options that choose other things to remove."""
    context = click.get_current_context()
    for name in ("older_than", "catalog"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(
                f"--run removes one run regardless of its age; leave {option} out"
            )


def _lines(report: GcReport) -> Iterator[str]:
    """What was removed, the sum last."""
    for shuffle in report.expired:
        stage = f"{shuffle.stage}, lost" if shuffle.is_lost else shuffle.stage
        yield (
            f"shuffle {shuffle.fingerprint[:16]} ({stage}): "
            f"{len(shuffle.keys)} files, {format_bytes(shuffle.num_bytes)}"
        )
    for run in report.runs:
        size = format_bytes(run.num_bytes)
        yield f"the folder of run {run.run_id}: {len(run.keys)} files, {size}"
    for table in report.versions:
        size = format_bytes(table.num_bytes)
        yield (
            f"{table.num_versions} versions of table {table.table_name}: "
            f"{table.num_objects} files, {size}"
        )
    for plans, what in ((report.plans, "plans"), (report.analyses, "analyses of plans")):
        if plans:
            size = format_bytes(sum(plan.num_bytes for plan in plans))
            yield f"{len(plans)} {what} that no recent run used: {size}"
    if report.orphans:
        size = format_bytes(report.orphan_bytes)
        yield f"{len(report.orphans)} uncommitted files: {size}"
    if report.uploads:
        yield f"the parts of {len(report.uploads)} unfinished uploads"
    yield (
        f"{format_bytes(report.num_bytes)} in {report.num_objects} files; "
        f"{report.num_kept} shuffles kept ({format_bytes(report.kept_bytes)}), "
        f"{report.num_kept_runs} runs"
    )
