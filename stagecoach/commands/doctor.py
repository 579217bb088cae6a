"""`stagecoach doctor`: looks whether all that a run needs is there, and says what to do."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.api.storage_root import with_storage
from stagecoach.arguments.options import (
    catalog_option,
    debug_option,
    read_settings,
    remote_option,
    storage_option,
)
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise

if TYPE_CHECKING:
    from stagecoach.doctor.findings import Finding

_MARKS = {"ok": "ok", "warning": "warn", "error": "ERROR", "skipped": "-"}
_COLOURS = {"ok": "green", "warning": "yellow", "error": "red", "skipped": None}


@click.command()
@storage_option
@catalog_option
@click.option("--master", metavar="MASTER", help="Spark master.  [default: local[*]]")
@remote_option
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set an option: engine.NAME or a Spark setting spark.…; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--requirements",
    is_flag=True,
    help="Only print the packages that executors need, as pip takes them.",
)
@debug_option
def doctor(
    storage: str | None,
    catalog: str,
    master: str | None,
    remote: str | None,
    assignments: tuple[str, ...],
    as_json: bool,
    requirements: bool,
    debug: bool,
) -> None:
    """Look at Java, Spark, its executors, storage, clocks, disks, tables and Dagster.

    Takes the options of the run that fails. Exits with 1 if something will keep runs from working.
    """
    from stagecoach.infra.config.settings import load_settings

    configure_logging(debug=debug)
    if requirements:
        from stagecoach.infra.spark.executor_packages import executor_requirements

        click.echo("\n".join(executor_requirements()))
        return
    given = read_settings(assignments, master=master, remote=remote)
    # A Spark of its own: what it finds is what a new one would find.
    settings = replace(load_settings(overrides=with_storage(given.engine, storage)), warm="never")
    if not debug:
        divert_noise()
    from stagecoach.doctor.examine import examine
    from stagecoach.doctor.place import Place

    place = Place(settings, Path(catalog))
    found: list[tuple[str, Finding]] = []
    for name, finding in examine(place):
        found.append((name, finding))
        if not as_json:
            _print(name, finding)
    failed = any(finding.status == "error" for _, finding in found)
    if as_json:
        findings = [{"check": name, **asdict(finding)} for name, finding in found]
        click.echo(json.dumps({"ok": not failed, "findings": findings}, indent=2))
    discard_log()
    if place.spark is not None:
        from stagecoach.infra.spark.session import stop_sessions

        stop_sessions()
    click.get_current_context().exit(1 if failed else 0)


def _print(name: str, finding: Finding) -> None:
    mark = click.style(f"{_MARKS[finding.status]:<5}", fg=_COLOURS[finding.status])
    click.echo(f"{mark} {name:<9} {finding.text}")
    if finding.advice:
        click.echo(f"      {'':<9} → {finding.advice}")
