"""`stagecoach tables publish` and `discard`: decides about results that failed their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import (
    catalog_option,
    debug_option,
    open_session,
    read_settings,
    storage_option,
)
from stagecoach.planner.text.sizes import format_bytes, format_rows
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from stagecoach.infra.formats.staged_version import StagedVersion
    from stagecoach.infra.formats.stored import StoredTable


@click.command(short_help="Publish a staged result although its checks failed")
@click.argument("name", metavar="TABLE")
@click.argument("staged_id", metavar="[ID]", required=False)
@catalog_option
@storage_option
@debug_option
def publish(
    name: str, staged_id: str | None, catalog: str, storage: str | None, debug: bool
) -> None:
    """Publish a staged result although its checks have failed.

    Without ID, the only result that is staged for the table. Run its query again afterwards: it
    finds its result accepted, and what reads the table goes on.
    """
    from stagecoach.infra.formats.version_log import utc_now
    from stagecoach.infra.publishing.accepted import accept

    configure_logging(debug=debug)
    session = open_session(catalog, storage, read_settings(()))
    table = session.catalog.stored(name)
    staged = _chosen(table, staged_id)
    # First, so that a run that finds the result published finds it accepted, too.
    accept(session.settings.open_store(), staged.table, staged.fingerprint, utc_now())
    version = table.publish_staged(staged.id)
    click.echo(
        f"published {staged.id} of {staged.table}: {format_rows(staged.num_rows)}, version "
        f"{version.number}; run its query again to start what reads the table"
    )


@click.command(short_help="Discard a staged result")
@click.argument("name", metavar="TABLE")
@click.argument("staged_id", metavar="[ID]", required=False)
@catalog_option
@storage_option
@debug_option
def discard(
    name: str, staged_id: str | None, catalog: str, storage: str | None, debug: bool
) -> None:
    """Discard a staged result: the table stays as it is.

    Without ID, the only result that is staged for the table. `stagecoach gc` removes its files.
    """
    configure_logging(debug=debug)
    session = open_session(catalog, storage, read_settings(()))
    table = session.catalog.stored(name)
    staged = _chosen(table, staged_id)
    table.discard_staged(staged.id)
    click.echo(f"discarded {staged.id} of {staged.table}: {format_rows(staged.num_rows)}")


def staged_text(staged: StagedVersion) -> str:
    """Return a line about a staged result."""
    keys = ", ".join(staged.partition_keys)
    run = f"  run {staged.run_id}" if staged.run_id else ""
    rows = format_rows(staged.num_rows, width=13)
    return (
        f"{staged.id}  {staged.staged_at}  {staged.mode:<17}  {rows}"
        f"  {format_bytes(staged.num_bytes):>8}{f'  {keys}' if keys else ''}{run}"
    )


def staged_json(staged: StagedVersion) -> dict[str, object]:
    """Return a staged result for `--format json`."""
    return {
        "id": staged.id,
        "staged_at": staged.staged_at,
        "mode": staged.mode,
        "run_id": staged.run_id,
        "rows": staged.num_rows,
        "bytes": staged.num_bytes,
        "files": staged.num_files,
        "partitions": list(staged.partition_keys),
    }


def _chosen(table: StoredTable, staged_id: str | None) -> StagedVersion:
    """The staged result that is meant.

    Raises:
        CatalogError: There is none, or several and none is named.
    """
    from stagecoach.planner.errors import CatalogError

    known = table.staged()
    found = [s for s in known if staged_id is None or s.id == staged_id.lower()]
    if len(found) == 1:
        return found[0]
    if not found:
        raise table.not_staged(staged_id or "")
    lines = "\n".join(f"  {staged_text(item)}" for item in found)
    raise CatalogError(f"several results are staged; name one:\n{lines}")
