"""`stagecoach query`: runs SQL files and prints their rows, or writes them to Parquet files."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stagecoach.arguments.options import SessionRequest, session_options
from stagecoach.arguments.project_files import (
    choose_files,
    project_option,
    read_selection,
    selected_paths,
    selection_options,
)
from stagecoach.arguments.sources import check_names, query_name, read_source
from stagecoach.terminal.errors import EXIT_FAILED, Source, report_error
from stagecoach.terminal.interrupts import was_interrupted
from stagecoach.terminal.output import FORMATS, Format
from stagecoach.terminal.progress import make_progress
from stagecoach.terminal.streams import discard_log, divert_noise, log_path

if TYPE_CHECKING:
    from stagecoach.api.result import Result
    from stagecoach.api.session import PlannedRun, Session
    from stagecoach.assets.project.selection import Selection


@dataclass(frozen=True, kw_only=True)
class _Request:
    """How each file is run and where its rows go."""

    given: SessionRequest
    output: Path | None
    output_dir: Path | None
    output_table: Mapping[str, Any] | None
    output_format: Format
    limit: int | None
    fresh: bool

    def target(self, path: str) -> Path | None:
        """The Parquet file of a query; None where its rows are printed."""
        if self.output_dir is not None:
            return self.output_dir / f"{query_name(path)}.parquet"
        return self.output


def _parse_output(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Mapping[str, Any] | None:
    """The mapping of `--output-table`, written in YAML."""
    if value is None:
        return None
    import yaml

    try:
        found = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise click.BadParameter(f"it is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise click.BadParameter("write a mapping: '{format: iceberg, table: …, catalog: …}'")
    return found


@click.command()
@click.argument("files", metavar="[FILE.sql]…", nargs=-1, type=click.Path())
@click.option(
    "--plan",
    "plans",
    metavar="PLAN.json",
    multiple=True,
    type=click.Path(),
    help="Run a plan that `stagecoach compile` wrote, instead of SQL; may be repeated.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the rows of one query to a file instead of printing them: CSV, JSON lines or Arrow "
    "if its name ends in .csv, .json (.jsonl, .ndjson) or .arrow, Parquet if in .parquet or has "
    "no ending.",
)
@click.option(
    "--output-dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each query's rows to DIR/NAME.parquet, NAME being that of its SQL file.",
)
@click.option(
    "--output-table",
    metavar="OUTPUT",
    callback=_parse_output,
    help="Write the rows of one query as a table, such as '{format: iceberg, table: tpch.q1, "
    "catalog: lake, mode: append}': the keys of `output` in front matter.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="Output format of rows: vertical prints a block per row, json one object per line.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    help="Print at most this many rows.  [default: 100 of table and vertical, else all]",
)
@click.option("--fresh", is_flag=True, help="Run every stage, even if its output exists.")
@project_option
@selection_options
@session_options("Do not show progress.")
def query(
    given: SessionRequest,
    *,
    files: tuple[str, ...],
    project: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    plans: tuple[str, ...],
    output: Path | None,
    output_dir: Path | None,
    output_table: Mapping[str, Any] | None,
    output_format: Format,
    limit: int | None,
    fresh: bool,
) -> None:
    """Run SQL files, stage by stage, through Dagster and Spark.

    Several files run one after the other over one Spark session; one that fails is reported and
    does not stop the others. FILE may be - for standard input.
    """
    selection = read_selection(select, exclude)
    if not files and not plans and selection is None:
        raise click.UsageError("Missing argument 'FILE.sql…'; a compiled plan is given with --plan")
    if (files and plans) or (selection is not None and (files or plans)):
        raise click.UsageError(
            "name SQL files, or compiled plans with --plan, or queries of a project with --select; "
            "only one of these"
        )
    if selection is not None:
        files = _selected_files(given, selection, project)
    source = click.get_current_context().get_parameter_source("output_format")
    is_default = source is click.core.ParameterSource.DEFAULT
    chosen_format = None if is_default else output_format
    _check_outputs(files or plans, output, output_dir, output_table, chosen_format)
    sources = {path: read_source(path) for path in files}
    request = _Request(
        given=given,
        output=output,
        output_dir=output_dir,
        output_table=output_table,
        output_format=output_format,
        limit=limit,
        fresh=fresh,
    )
    if not given.debug:
        divert_noise()
    with given.open() as session:
        if files:
            _check_parameters(session, given.params, list(sources.values()))
        # A text with EXPLAIN in it may not be a query that runs.
        if not any("explain" in source.sql.lower() for source in sources.values()):
            session.expect_spark(fresh=fresh)
        codes = {
            path: _run_file(session, path, sources.get(path), request) for path in files or plans
        }
    _finish(codes)


def _selected_files(given: SessionRequest, selection: Selection, project: Path) -> tuple[str, ...]:
    """The files of the project's queries that are selected, upstream ones first.

    Raises:
        click.UsageError: There is no such query, table or tag.
        click.exceptions.Exit: None is selected.
    """
    files = choose_files((), project, "run")
    with given.open(offline=True) as session:
        macros = session.base_catalog.macros
    paths = selected_paths(selection, files.files, macros, files.plans)
    if not paths:
        click.echo("no query is selected", err=True)
        raise click.exceptions.Exit(0)
    return tuple(map(str, paths))


def _check_outputs(
    files: Sequence[str],
    output: Path | None,
    output_dir: Path | None,
    output_table: Mapping[str, Any] | None,
    output_format: Format | None,
) -> None:
    """Refuse what cannot be meant; `output_format` is None where the user has not chosen one."""
    given = {"--output": output, "--output-dir": output_dir, "--output-table": output_table}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot be used together; choose one")
    if output is not None and len(files) > 1:
        raise click.UsageError("--output is for one query; use --output-dir for several")
    if output_table is not None:
        from stagecoach.api.exporting import read_output

        if len(files) > 1:
            raise click.UsageError("--output-table is for one query")
        read_output(output_table)
    if output is not None:
        _check_output(output, output_format)
    if output_dir is not None:
        if output_format is not None:
            raise click.UsageError(
                f"--output-dir writes Parquet files, not {output_format}; leave --format out, or "
                "use --output for each query"
            )
        check_names(files)


def _check_output(output: Path, output_format: Format | None) -> None:
    from stagecoach.terminal.result_files import format_of, is_replaceable

    if output.is_dir():
        raise click.UsageError(f"--output {output} is a folder; name a file, or use --output-dir")
    # Standard output may be a file, such as `> rows.csv`, which must not be replaced either.
    if str(output) == "-" or not is_replaceable(output) or _is_standard_output(output):
        raise click.UsageError(
            f"--output {output} is not a regular file, or is where standard output goes; name "
            "another file, or leave --output out: --format csv and --format json print all rows"
        )
    file_format = format_of(output)
    if output_format not in (None, file_format):
        raise click.UsageError(
            f"--output {output} is written as {file_format}, not as {output_format}; the end of "
            "its name decides, so leave --format out"
        )


def _is_standard_output(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), path.stat())
    except (OSError, ValueError):  # nothing is there, or standard output is no file
        return False


def _check_parameters(session: Session, given: dict[str, str], sources: Sequence[Source]) -> None:
    """Refuse a parameter that none of the files has."""
    from stagecoach.assets.project.front_matter import FrontMatterError, parse_front_matter
    from stagecoach.planner.plan.given_parameters import check_known

    known: set[str] = set()
    for source in sources if given else ():
        used = _used_parameters(session, source.sql)
        if used is None:
            return  # a mistake in the SQL comes first
        try:
            known |= {*used, *parse_front_matter(source.sql).parameter_types}
        except FrontMatterError:
            return
    if given:
        check_known(given, known)


def _used_parameters(session: Session, sql: str) -> Sequence[str] | None:
    """Names of the parameters of a query and its macros; None where it has a mistake."""
    from stagecoach.api.explaining import without_explain
    from stagecoach.api.query_parameters import used_parameters
    from stagecoach.planner.errors import SqlError

    try:
        return used_parameters(session.expand(without_explain(sql)).text)
    except SqlError:
        return None


def _run_file(session: Session, path: str, source: Source | None, request: _Request) -> int:
    """Run one file and report a failure; return the exit code that it asks for."""
    started = time.perf_counter()
    try:
        result = _run(session, path, source, request)
        _emit(result, path, request, time.perf_counter() - started)
    except BrokenPipeError:
        raise
    except Exception as error:  # reported; the other files go on
        if was_interrupted():
            raise KeyboardInterrupt from error
        return report_error(error, source, debug=request.given.debug)
    return 0


def _run(session: Session, path: str, source: Source | None, request: _Request) -> Result:
    if source is None:
        return _run_planned(session, session.load(path, request.given.params), request)
    mine = request.given.params
    if mine and (used := _used_parameters(session, source.sql)) is not None:
        # A parameter of another file is none of this one's; unknown ones were refused before.
        mine = {name: value for name, value in mine.items() if name in used}
    if (explained := session.explained(source.sql, mine, name=query_name(path))) is not None:
        return explained
    planned = session.plan(source.sql, mine, name=query_name(path))
    return _run_planned(session, planned, request)


def _run_planned(session: Session, planned: PlannedRun, request: _Request) -> Result:
    session.check_storage()
    with make_progress(planned.graph, quiet=request.given.quiet) as progress:
        return session.run(
            planned, fresh=request.fresh, progress=progress, debug=request.given.debug
        )


def _emit(result: Result, path: str, request: _Request, seconds: float) -> None:
    from stagecoach.api.explaining import PlanResult
    from stagecoach.terminal.output import render_rows
    from stagecoach.terminal.result_files import write_result
    from stagecoach.terminal.text_tables import terminal_width

    target = request.target(path)
    if request.output_table is not None and isinstance(result, PlanResult):
        raise click.UsageError("--output-table is for rows of a query, not for those of EXPLAIN")
    if isinstance(result, PlanResult) and target is None and request.output_format == "table":
        result.show()
        return
    rows = result.num_rows
    place = ""
    if target is not None:
        zone = result.graph.time_zone
        write_result(
            target, result.schema, result.batches(), columns=result.columns, time_zone=zone
        )
        place = f" → {target}"
    elif request.output_table is not None:
        written = result.write_table(**request.output_table)
        again = ", which had them already" if written.reused else ""
        place = f" → table {written.table}, version {written.version}{again}"
    if not request.given.quiet:
        reused = sum(1 for stage in result.stages if stage.reused)
        count = len(result.stages)
        taken = f", {reused} reused" if reused else ""
        click.echo(
            f"{query_name(path)}: {rows:,} row{'' if rows == 1 else 's'} in {seconds:.2f} s "
            f"({count} stage{'' if count == 1 else 's'}{taken}){place}",
            err=True,
        )
    if target is None and request.output_table is None:
        lines = render_rows(
            result.schema,
            result.batches(),
            request.output_format,
            columns=result.columns,
            limit=request.limit,
            num_rows=rows,
            time_zone=result.graph.time_zone,
            width=terminal_width(),
        )
        for line in lines:
            click.echo(line)


def _finish(codes: dict[str, int]) -> None:
    failed = [path for path, code in codes.items() if code]
    if not failed:
        discard_log()
        return
    if len(codes) > 1:
        names = ", ".join(query_name(path) for path in failed)
        click.echo(f"{len(failed)} of {len(codes)} queries failed: {names}", err=True)
    if EXIT_FAILED in codes.values() and (log := log_path()):
        click.echo(f"Spark's log: {log}", err=True)
    # Several queries: some may have run, so it is the run that failed.
    raise click.exceptions.Exit(codes[failed[0]] if len(codes) == 1 else EXIT_FAILED)
