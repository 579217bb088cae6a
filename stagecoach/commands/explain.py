"""`stagecoach explain`: prints the plan of a SQL file.

Nothing is run, but with `--analyze`: then the query is, and its run is shown beside its plan.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from stagecoach.arguments.options import SessionRequest, offline_option, session_options
from stagecoach.arguments.sources import query_name, read_source
from stagecoach.terminal.errors import report_error
from stagecoach.terminal.interrupts import was_interrupted
from stagecoach.terminal.progress import make_progress
from stagecoach.terminal.streams import announce_spark, discard_log, divert_noise

if TYPE_CHECKING:
    from stagecoach.api.analysis import Analysis
    from stagecoach.api.session import Session
    from stagecoach.planner.options import PlanPhase

_ANALYZE_FORMATS = ("text", "json", "yaml")


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What to show, and how."""

    name: str
    given: SessionRequest
    plan: PlanPhase | Literal["all"]
    output_format: str
    details: bool
    html: Path | None
    fresh: bool


@click.command()
@click.argument("file", metavar="FILE.sql", type=click.Path())
@click.option(
    "--plan",
    type=click.Choice(["logical", "optimized", "physical", "stages", "all"]),
    default="stages",
    show_default=True,
    help="The phase to show; all shows every phase.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "yaml", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="Output format; a diagram shows a single phase.",
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
    help="Run the query and compare estimates with actual numbers.",
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
    help="With --analyze: run every stage, even if its output exists.",
)
@offline_option
@session_options("With --analyze: do not show progress.")
def explain(
    given: SessionRequest,
    *,
    file: str,
    plan: PlanPhase | Literal["all"],
    output_format: str,
    details: bool,
    lineage: bool,
    analyze: bool,
    html: Path | None,
    fresh: bool,
    offline: bool,
) -> None:
    """Show the plan of a SQL file: why each exchange is there, what runs each stage and why."""
    _check_options(analyze, html, fresh, plan, output_format)
    _check_lineage(lineage, analyze, plan, output_format)
    source = read_source(file)
    request = _Request(
        name=query_name(file),
        given=given,
        plan=plan,
        output_format=output_format,
        details=details,
        html=html,
        fresh=fresh,
    )
    if analyze and not given.debug:
        divert_noise()
    with given.open(offline=offline) as session:
        if not given.debug:
            session.on_spark = announce_spark
        try:
            show = _analyze if analyze else _lineage if lineage else _explain
            text = show(session, source.sql, request)
        except Exception as error:
            if was_interrupted():
                raise KeyboardInterrupt from error
            code = report_error(error, source, debug=given.debug)
            raise click.exceptions.Exit(code) from error
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
        request.given.params,
        plan=request.plan,
        format=request.output_format,
        details=request.details,
        name=request.name,
    )


def _lineage(session: Session, sql: str, request: _Request) -> str:
    from stagecoach.api.explaining import without_explain
    from stagecoach.planner.explain.lineage import render_lineage

    graph = session.plan(without_explain(sql), request.given.params, name=request.name).graph
    return render_lineage(graph, request.output_format, details=request.details)


def _analyze(session: Session, sql: str, request: _Request) -> str:
    from stagecoach.api.analysis import analysis_json, analysis_text, analysis_yaml
    from stagecoach.api.explaining import without_explain

    planned = session.plan(without_explain(sql), request.given.params, name=request.name)
    session.check_storage()
    with make_progress(planned.graph, quiet=request.given.quiet) as progress:
        analysis = session.analyze_run(
            planned, fresh=request.fresh, progress=progress, debug=request.given.debug
        )
    if request.html is not None:
        _write_page(analysis, request.html)
    if reused := sum(1 for row in analysis.stages if row.reused):
        click.echo(_reused_note(reused, len(analysis.stages)), err=True)
    shows = {"json": analysis_json, "yaml": analysis_yaml}
    return shows.get(request.output_format, analysis_text)(analysis)


def _reused_note(reused: int, total: int) -> str:
    what = "the stage was" if total == 1 else f"{reused} of {total} stages were"
    return f"note: {what} reused, with the times of an earlier run; --fresh runs every stage"


def _write_page(analysis: Analysis, path: Path) -> None:
    from stagecoach.api.analysis import analysis_page

    written_at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(analysis.started_at))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(analysis_page(analysis, written_at), encoding="utf-8")
    click.echo(f"{analysis.graph.query} → {path}", err=True)
