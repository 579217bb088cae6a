"""`stagecoach storage verify`: checks that everything that is stored is what was written."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from stagecoach.api.session import DEFAULT_CATALOG
from stagecoach.arguments.options import debug_option, storage_option
from stagecoach.planner.text.sizes import format_bytes
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stagecoach.infra.formats.capabilities import Adopted, Verifies
    from stagecoach.infra.integrity.findings import StoredDamage
    from stagecoach.infra.storage.object_store import ObjectStore
    from stagecoach.infra.upkeep.verify.verification import VerifyProgress, VerifyReport


@click.command()
@storage_option
@click.option("--table", metavar="NAME", help="Check only this table, published or deduplicated.")
@click.option(
    "--catalog",
    metavar="CATALOG.yaml",
    help=f"Check its deduplicated tables as well.  [default: {DEFAULT_CATALOG}, if there is one]",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="First give checksums to files of tables that have none.",
)
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
@debug_option
@click.pass_context
def verify(
    context: click.Context,
    storage: str | None,
    table: str | None,
    catalog: str | None,
    adopt: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Check everything in the storage against its checksums.

    Tables with all their versions, outputs of stages, runs, and plans. The exit code is 1 if
    anything is damaged. Safe beside runs and gc; nothing is changed without --adopt.

    With --adopt, files of tables that an older Stagecoach wrote without checksums are read and
    decoded completely, and get checksums in one more version of the table. Its rows stay what they
    are, and nothing is run again because of it.
    """
    from stagecoach.api.catalog_tables import catalog_tables
    from stagecoach.api.storage_root import existing_storage
    from stagecoach.infra.upkeep.verify.verification import verify_storage

    configure_logging(debug=debug)
    if storage is None and context.parent is not None:
        storage = context.parent.params.get("storage")  # `storage --storage URL verify`
    store = existing_storage(storage)
    tables = [found for item in catalog_tables(catalog) if (found := item.verifies())]
    adopted = _adopt(store, tables, table) if adopt else []
    with _bar() as progress:
        report = verify_storage(store, tables, table=table, progress=progress)
    damages = _all_damages(report, adopted)
    if as_json:
        click.echo(json.dumps(_as_json(report, adopted, damages), indent=2, ensure_ascii=False))
    else:
        for line in _lines(report, adopted, damages):
            click.echo(line)
    if damages:
        context.exit(1)


def _adopt(store: ObjectStore, tables: Sequence[Verifies], table: str | None) -> list[Adopted]:
    from stagecoach.infra.upkeep.verify.adopt import adopt_checksums

    return adopt_checksums(store, tables, table=table)


def _all_damages(report: VerifyReport, adopted: Sequence[Adopted]) -> list[StoredDamage]:
    """What the check found, and what only decoding could find."""
    known = {damage.uri for damage in report.damages}
    decoded = [d for item in adopted for d in item.damages if d.uri not in known]
    return [*report.damages, *decoded]


def _lines(
    report: VerifyReport, adopted: Sequence[Adopted], damages: Sequence[StoredDamage]
) -> Iterator[str]:
    for item in adopted:
        if item.version is not None:
            yield f"table {item.table}: {item.files} files got checksums in version {item.version}"
    for damage in damages:
        yield f"damaged: {damage.uri}"
        yield f"  {damage.place}: {damage.problem}" if damage.place else f"  {damage.problem}"
        yield f"  {damage.remedy}"
    if report.foreign:
        yield f"not checked, written by another version of Stagecoach: {_counts(report.foreign)}"
    if report.unchecked:
        yield f"without checksums, so damage may go unnoticed: {_counts(report.unchecked)}"
    if report.unchecked_tables:
        found = sorted(report.unchecked_tables.items())
        tables = ", ".join(f"{count:,} of table '{name}'" for name, count in found)
        yield (
            f"{tables}: files that an older Stagecoach wrote; "
            "`stagecoach storage verify --adopt` gives them checksums"
        )
    yield (
        f"checked {report.num_objects:,} objects, {format_bytes(report.num_bytes)}: "
        + (f"{len(damages)} damaged" if damages else "no damage found")
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def _as_json(
    report: VerifyReport, adopted: Sequence[Adopted], damages: Sequence[StoredDamage]
) -> dict[str, object]:
    return {
        "damages": [_damage_json(damage) for damage in damages],
        "checked": dict(report.checked),
        "bytes": report.num_bytes,
        "without_checksums": dict(report.unchecked),
        "tables_without_checksums": dict(report.unchecked_tables),
        "of_other_versions": dict(report.foreign),
        "adopted": [
            {"table": item.table, "version": item.version, "files": item.files} for item in adopted
        ],
    }


def _damage_json(damage: StoredDamage) -> dict[str, object]:
    return {
        "uri": damage.uri,
        "table": damage.table or None,
        "version": damage.version,
        "owner": damage.owner or None,
        "column": damage.column or None,
        "row_group": damage.row_group,
        "problem": damage.problem,
        "remedy": damage.remedy,
    }


@contextmanager
def _bar() -> Iterator[Callable[[VerifyProgress], None]]:
    """Show a bar where somebody watches it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("verify"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[note]}", markup=False),
    )
    console = Console(file=sys.stderr, highlight=False)
    with Progress(*columns, expand=True, console=console, refresh_per_second=8) as bars:
        task = bars.add_task("verify", total=None, note="")

        def show(progress: VerifyProgress) -> None:
            note = f"{progress.objects:,} objects, {format_bytes(progress.num_bytes)}"
            if progress.damaged:
                note += f", {progress.damaged} damaged"
            total = max(progress.known_bytes, 1)
            bars.update(task, completed=progress.num_bytes, total=total, note=note)

        yield show
