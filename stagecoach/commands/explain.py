"""`stagecoach explain`: one SQL file in, its plan on standard output; nothing is run."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import click

from stagecoach.options import (
    catalog_option,
    debug_option,
    open_session,
    planning_options,
    read_settings,
)
from stagecoach.reporting import describe_error, exit_code
from stagecoach.sources import query_name, read_source
from stagecoach.terminal import configure_logging

if TYPE_CHECKING:
    from planner.options import PlanPhase


@click.command()
@click.argument("file", metavar="FILE.sql", type=click.Path())
@catalog_option
@planning_options
@click.option(
    "--plan",
    type=click.Choice(["logical", "optimized", "physical", "stages"]),
    default="stages",
    show_default=True,
    help="How far to plan.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "yaml", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="How stages are shown; the other plans are text.",
)
@debug_option
def explain(
    file: str,
    catalog: str,
    params: tuple[str, ...],
    engine: str | None,
    time_zone: str | None,
    assignments: tuple[str, ...],
    plan: PlanPhase,
    output_format: str,
    debug: bool,
) -> None:
    """Show the plan of a SQL file, with the engine of each stage and why it is that one."""
    from stagecoach.parameters import parse_assignments

    configure_logging(debug=debug)
    source = read_source(file)
    settings = read_settings(assignments, engine=engine, time_zone=time_zone)
    session = open_session(catalog, None, settings)
    try:
        text = session.explain(
            source.sql,
            parse_assignments(params),
            plan=plan,
            format=output_format,
            name=query_name(file),
        )
    except Exception as error:
        if debug:
            click.echo(traceback.format_exc().rstrip(), err=True)
        click.echo(describe_error(error, source), err=True)
        raise click.exceptions.Exit(exit_code(error)) from error
    click.echo(text.rstrip("\n"))
