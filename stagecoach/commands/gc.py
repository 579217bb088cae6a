"""`stagecoach gc`: removes what no run and no result needs from storage."""

from __future__ import annotations

import datetime
import re

import click

from stagecoach.options import debug_option, storage_option
from stagecoach.progress import format_bytes
from stagecoach.terminal import configure_logging

_AGE = re.compile(r"(\d+)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class AgeType(click.ParamType[datetime.timedelta]):
    """An age such as `12h` or `7d`."""

    name = "age"

    def convert(  # noqa: D102 - click's
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime.timedelta:
        if isinstance(value, datetime.timedelta):
            return value
        match = _AGE.fullmatch(str(value).strip().lower())
        if match is None:
            self.fail(f"'{value}' is no age; give a number and s, m, h, d or w, such as 7d")
        try:
            return datetime.timedelta(**{_UNITS[match[2]]: int(match[1])})
        except OverflowError:
            self.fail(f"'{value}' is too long")


@click.command()
@storage_option
@click.option(
    "--older-than",
    type=AgeType(),
    default="7d",
    show_default=True,
    metavar="AGE",
    help="Remove only what is older: a number and s, m, h, d or w.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@debug_option
def gc(storage: str | None, older_than: datetime.timedelta, dry_run: bool, debug: bool) -> None:
    """Remove expired shuffles and files that failed attempts left behind.

    Nothing is removed that a run of the last AGE, a run in progress or a published result needs.
    """
    from infra.shuffle.gc import collect_garbage
    from stagecoach.session import open_storage

    configure_logging(debug=debug)
    store = open_storage(storage)
    report = collect_garbage(store, older_than=older_than, dry_run=dry_run)
    verb = "would remove" if dry_run else "removed"
    for shuffle in report.expired:
        click.echo(
            f"{verb} shuffle {shuffle.fingerprint[:16]} ({shuffle.stage}): "
            f"{len(shuffle.keys)} files, {format_bytes(shuffle.num_bytes)}"
        )
    if report.orphans:
        size = format_bytes(report.orphan_bytes)
        click.echo(f"{verb} {len(report.orphans)} files that were never committed: {size}")
    click.echo(
        f"{verb} {format_bytes(report.num_bytes)} in {report.num_objects} files; "
        f"{report.num_kept} shuffles kept"
    )
