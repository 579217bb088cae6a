"""`stagecoach explain`: one SQL file in, its plan on standard output.

Nothing is run, but with `--analyze`: then the query is, and its run is shown beside its plan.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from stagecoach.interrupts import was_interrupted
from stagecoach.options import (
    catalog_option,
    debug_option,
    open_session,
    planning_options,
    read_settings,
    spark_options,
    storage_option,
)
from stagecoach.progress import make_progress
from stagecoach.reporting import describe_error, exit_code
from stagecoach.sources import query_name, read_source
from stagecoach.terminal import configure_logging, discard_log, divert_noise

if TYPE_CHECKING:
    from planner.options import PlanPhase
    from stagecoach.analysis import Analysis
    from stagecoach.session import Session

_ANALYZE_FORMATS = ("text", "json", "yaml")


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What to show, and how."""

    name: str
    params: dict[str, str]
    plan: PlanPhase | Literal["all"]
    output_format: str
    details: bool
    lineage: bool
    html: Path | None
    fresh: bool
    quiet: bool
    debug: bool


@click.command()
@click.argument("file", metavar="FILE.sql", type=click.Path())
@catalog_option
@storage_option
@planning_options
@click.option(
    "--plan",
    type=click.Choice(["logical", "optimized", "physical", "stages", "all"]),
    default="stages",
    show_default=True,
    help="How far to plan; all shows every phase.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "yaml", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="How the plan is shown; a diagram is of one phase.",
)
@click.option(
    "--details",
    is_flag=True,
    help="Show the SQL of each stage and why its engine runs it; JSON and YAML always do.",
)
@click.option(
    "--lineage",
    is_flag=True,
    help="Show which columns of tables each column of the result comes from; "
    "with --details, of each stage, too.",
)
@click.option(
    "--analyze",
    is_flag=True,
    help="Run the query and show what it took beside what was estimated.",
)
@click.option(
    "--html",
    metavar="FILE.html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --analyze: write the run to one HTML page, with its stages and a timeline.",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="With --analyze: run every stage even where its output is there.",
)
@spark_options
@click.option("--quiet", "-q", is_flag=True, help="With --analyze: no progress.")
@debug_option
def explain(
    file: str,
    catalog: str,
    storage: str | None,
    params: tuple[str, ...],
    engine: str | None,
    time_zone: str | None,
    assignments: tuple[str, ...],
    plan: PlanPhase | Literal["all"],
    output_format: str,
    details: bool,
    lineage: bool,
    analyze: bool,
    html: Path | None,
    fresh: bool,
    master: str | None,
    remote: str | None,
    quiet: bool,
    debug: bool,
) -> None:
    """Show the plan of a SQL file: why each exchange is there, what runs each stage and why."""
    from stagecoach.parameters import parse_assignments

    _check_options(analyze, html, fresh, plan, output_format)
    _check_lineage(lineage, analyze, plan, output_format)
    configure_logging(debug=debug)
    source = read_source(file)
    settings = read_settings(
        assignments, engine=engine, time_zone=time_zone, master=master, remote=remote
    )
    request = _Request(
        name=query_name(file),
        params=parse_assignments(params),
        plan=plan,
        output_format=output_format,
        details=details,
        lineage=lineage,
        html=html,
        fresh=fresh,
        quiet=quiet,
        debug=debug,
    )
    if analyze and not debug:
        divert_noise()
    with open_session(catalog, storage, settings) as session:
        try:
            show = _analyze if analyze else _lineage if lineage else _explain
            text = show(session, source.sql, request)
        except Exception as error:
            if was_interrupted():
                raise KeyboardInterrupt from error
            if debug:
                click.echo(traceback.format_exc().rstrip(), err=True)
            click.echo(describe_error(error, source), err=True)
            raise click.exceptions.Exit(exit_code(error)) from error
    click.echo(text.rstrip("\n"))
    if analyze:
        discard_log()


def _check_options(
    analyze: bool, html: Path | None, fresh: bool, plan: str, output_format: str
) -> None:
    if not analyze and (html is not None or fresh):
        option = "--html" if html is not None else "--fresh"
        raise click.UsageError(f"{option} needs --analyze, which runs the query")
    if analyze and plan != "stages":
        raise click.UsageError("--analyze shows stages; leave --plan out")
    if analyze and output_format not in _ANALYZE_FORMATS:
        raise click.UsageError(
            f"--analyze shows {', '.join(_ANALYZE_FORMATS)}, not {output_format}; "
            "--html FILE draws the stages"
        )


def _check_lineage(lineage: bool, analyze: bool, plan: str, output_format: str) -> None:
    if lineage and (analyze or plan != "stages"):
        option = "--analyze" if analyze else "--plan"
        raise click.UsageError(f"--lineage shows where columns come from; leave {option} out")
    if lineage and output_format == "dot":
        raise click.UsageError("--lineage shows text, json, yaml, mermaid, not dot")


def _explain(session: Session, sql: str, request: _Request) -> str:
    return session.explain(
        sql,
        request.params,
        plan=request.plan,
        format=request.output_format,
        details=request.details,
        name=request.name,
    )


def _lineage(session: Session, sql: str, request: _Request) -> str:
    from planner.explain.lineage import render_lineage
    from planner.explain.statement import split_explain

    if (statement := split_explain(sql)) is not None:
        sql = statement.sql
    graph = session.plan(sql, request.params, name=request.name).graph
    return render_lineage(graph, request.output_format, details=request.details)


def _analyze(session: Session, sql: str, request: _Request) -> str:
    from planner.explain.statement import split_explain
    from stagecoach.analysis import analysis_json, analysis_text, analysis_yaml

    if (statement := split_explain(sql)) is not None:
        sql = statement.sql
    planned = session.plan(sql, request.params, name=request.name)
    session.check_storage()
    with make_progress(planned.graph, quiet=request.quiet) as progress:
        analysis = session.analyze_run(
            planned, fresh=request.fresh, progress=progress, debug=request.debug
        )
    if request.html is not None:
        _write_page(analysis, request.html)
    shows = {"json": analysis_json, "yaml": analysis_yaml}
    return shows.get(request.output_format, analysis_text)(analysis)


def _write_page(analysis: Analysis, path: Path) -> None:
    from stagecoach.analysis import analysis_page

    written_at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(analysis.started_at))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(analysis_page(analysis, written_at), encoding="utf-8")
    click.echo(f"{analysis.graph.query} → {path}", err=True)
