"""`stagecoach storage`: what a storage root holds, by query and stage; `verify` checks it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import debug_option, storage_option, text_or_json_option
from stagecoach.commands.verify import verify
from stagecoach.planner.text.sizes import format_bytes
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stagecoach.infra.upkeep.usage import StorageUsage, Usage


@click.group(invoke_without_command=True)
@storage_option
@text_or_json_option
@debug_option
@click.pass_context
def storage(context: click.Context, storage: str | None, output_format: str, debug: bool) -> None:
    """Show what is stored: shuffles by query and stage, published tables, runs, plans.

    `stagecoach gc --dry-run` says what of it nothing needs any more, and `stagecoach storage
    verify` whether all of it is what was written.
    """
    if context.invoked_subcommand is not None:
        return
    from stagecoach.api.storage_root import existing_storage
    from stagecoach.infra.upkeep.usage import storage_usage

    configure_logging(debug=debug)
    found = storage_usage(existing_storage(storage))
    if output_format == "json":
        click.echo(json.dumps(_as_json(found), indent=2, ensure_ascii=False))
        return
    lines = list(_lines(found))
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        click.echo(f"{name:<{width}}  {text}".rstrip())


def _lines(found: StorageUsage) -> Iterator[tuple[str, str]]:
    head = f"{'commits':>7} {'rows':>14} {'objects':>8} {'size':>9}  last written"
    yield "stage", head
    for usage in found.stages:
        yield usage.name, _numbers(usage, str(usage.num_items), f"{usage.num_rows:,}")
    for usage in found.tables:
        yield f"table {usage.name}", _numbers(usage)
    yield from (
        (name, _numbers(usage))
        for name, usage in (
            (f"{found.runs.num_items} runs", found.runs),
            (f"plans of {found.plans.num_items} queries", found.plans),
            *((usage.name, usage) for usage in (found.analyses, *found.others, found.uncommitted)),
        )
        if usage.num_objects
    )
    yield "total", _numbers(found.total)


def _numbers(usage: Usage, items: str = "", rows: str = "") -> str:
    written = f"{usage.last_written:%Y-%m-%d %H:%M} UTC" if usage.last_written else ""
    size = format_bytes(usage.num_bytes)
    return f"{items:>7} {rows:>14} {usage.num_objects:>8,} {size:>9}  {written}"


def _as_json(found: StorageUsage) -> dict[str, object]:
    return {
        "stages": [_usage_json(usage) for usage in found.stages],
        "tables": [_usage_json(usage) for usage in found.tables],
        "runs": _usage_json(found.runs),
        "plans": _usage_json(found.plans),
        "analyses": _usage_json(found.analyses),
        "others": [_usage_json(usage) for usage in found.others],
        "uncommitted": _usage_json(found.uncommitted),
        "total": _usage_json(found.total),
    }


def _usage_json(usage: Usage) -> dict[str, object]:
    written = usage.last_written
    return {
        "name": usage.name,
        "items": usage.num_items,
        "objects": usage.num_objects,
        "bytes": usage.num_bytes,
        "rows": usage.num_rows,
        "last_written": None if written is None else written.isoformat(),
    }


storage.add_command(verify)
