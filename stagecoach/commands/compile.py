"""`stagecoach compile`: writes the plan of each query to a file, or checks such files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import ProjectRequest, project_options
from stagecoach.arguments.project_files import ChosenFiles
from stagecoach.arguments.sources import query_name
from stagecoach.terminal.errors import (
    EXIT_FAILED,
    EXIT_USAGE,
    Source,
    report_error,
)
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from stagecoach.assets.plans.files import CompiledPlan
    from stagecoach.assets.plans.staleness import Finding
    from stagecoach.planner.arbiter import Arbiter
    from stagecoach.planner.catalog import Catalog
    from stagecoach.planner.options import PlannerOptions
    from stagecoach.planner.syntax.macros.expand import Macros


@dataclass(frozen=True, kw_only=True)
class _Job:
    """The queries, and where their plans are.

    Args:
        files: The queries' files.
        plans: Folder of the plans.
        catalog: The base tables.
        macros: The macros of the project.
        options: What queries are planned with.
        arbiter: Is asked about queries that the planner cannot stage; None when offline.
        debug: Whether tracebacks are shown.
    """

    files: ChosenFiles
    plans: Path
    catalog: Catalog
    macros: Macros
    options: PlannerOptions
    arbiter: Arbiter | None
    debug: bool


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The plan of a query as it is made now, and the file that it belongs in."""

    target: Path
    plan: CompiledPlan
    finding: Finding


@click.command(name="compile")
@click.option(
    "--output-dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the plans are: DIR/NAME.json, NAME being that of the SQL file.  "
    "[default: plans beside the folder of the queries]",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; list missing and stale plans with the reasons and exit with 1.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="With --check: also treat a plan as stale if today's statistics would change it.",
)
@click.option("--force", is_flag=True, help="Write every plan, even if it has not changed.")
@project_options
def compile_(
    request: ProjectRequest, output_dir: Path | None, check: bool, strict: bool, force: bool
) -> None:
    """Write the plans of SQL files as stage graphs, or check those that are committed.

    Without files, all queries of the project; their checks have plans of their own. A plan is stale
    when its SQL, the columns of its tables, the planner's options or the planner have changed;
    moved statistics alone make none stale.
    """
    if strict and not check:
        raise click.UsageError("--strict needs --check")
    if force and check:
        raise click.UsageError("--check writes nothing, so --force has no meaning with it")
    configure_logging(debug=request.debug)
    chosen = request.files("compile")
    _check_targets(chosen.chosen)
    with request.session() as session:
        plans = output_dir or chosen.plans
        job = _Job(
            files=request.selected(chosen, session, plans),
            plans=plans,
            catalog=session.base_catalog,
            macros=session.base_catalog.macros,
            options=session.options,
            arbiter=session.arbiter(),
            debug=request.debug,
        )
        code = _check(job, strict) if check else _compile(job, force)
    if code:
        raise click.exceptions.Exit(code)


def _check_targets(files: Sequence[Path]) -> None:
    names: dict[str, Path] = {}
    for path in files:
        other = names.setdefault(query_name(str(path)).lower(), path)
        if other != path:
            raise click.UsageError(f"{other} and {path} would be the same plan file; rename one")


def _compile(job: _Job, force: bool) -> int:
    codes = [0]
    known: set[Path] = set()
    for found in _plans(job, codes):
        known.add(found.target)
        if found.finding.is_as_written and not force:
            click.echo(f"{found.target}: unchanged")
            continue
        found.target.parent.mkdir(parents=True, exist_ok=True)
        # In one step: whoever reads the folder meanwhile sees the old plan or the new one.
        draft = found.target.with_suffix(".tmp")
        draft.write_text(found.plan.to_text(), encoding="utf-8")
        draft.replace(found.target)
        count = len(found.plan.graph.stages)
        words = f"{count} stage{'' if count == 1 else 's'}{_note(found.finding)}"
        click.echo(f"{found.target}: {words}")
    # Those of queries that are gone stay: another project may have its plans in the same folder.
    for path in _orphans(job, known) if job.files.whole and not any(codes) else []:
        if _is_of_check(path, known):
            path.unlink()
            click.echo(f"{path}: removed; its query has no such check any more")
    return max(codes)


def _check(job: _Job, strict: bool) -> int:
    bad, codes = 0, [0]
    known: set[Path] = set()
    for found in _plans(job, codes):
        stale = strict and found.finding.status == "would change"
        status = "stale" if stale else found.finding.status
        bad += status in ("stale", "missing")
        known.add(found.target)
        click.echo(f"{found.target}: {status}")
        for reason in found.finding.reasons:
            click.echo(f"  {reason}")
    orphans = _orphans(job, known) if job.files.whole and not any(codes) else []
    fix = "; run `stagecoach compile`" if bad else ""
    for path in orphans:
        bad += 1
        reason = f"query '{path.stem}' no longer exists; delete the file"
        if _is_of_check(path, known):
            reason = "its query has no such check any more"
            fix = "; run `stagecoach compile`"
        click.echo(f"{path}: stale\n  {reason}")
    if bad:
        total = len(known) + len(orphans)
        click.echo(f"{bad} of {total} plans are stale or missing{fix}", err=True)
        codes.append(EXIT_FAILED)
    return max(codes)


def _orphans(job: _Job, known: Collection[Path]) -> list[Path]:
    """Plan files without a query, where all queries of a project are looked at."""
    from stagecoach.assets.plans.files import SUFFIX

    return sorted(path for path in job.plans.glob(f"*{SUFFIX}") if path not in known)


def _is_of_check(path: Path, known: Collection[Path]) -> bool:
    """Whether a plan is that of a check of a query that has a plan: `<query>.<check>.json`."""
    query, _, check = path.stem.partition(".")
    return bool(check) and path.with_name(f"{query}{path.suffix}") in known


def _plans(job: _Job, codes: list[int]) -> Iterator[_Found]:
    """The plans of the chosen queries and of their checks, upstream ones first.

    Those of other queries of the project are made, too, where their tables are read. Whatever has
    mistakes is reported, and its exit code added to `codes`; the other queries go on.
    """
    from stagecoach.assets.plans.compiled import compile_project
    from stagecoach.assets.plans.files import plan_file
    from stagecoach.assets.plans.staleness import check_plan
    from stagecoach.assets.project.queries import read_queries

    queries, broken, problems = read_queries(job.files.files, job.macros)
    chosen = {str(path) for path in job.files.chosen}
    for problem in (p for p in problems if p.path in chosen):
        click.echo(f"error: {problem}", err=True)
        codes.append(EXIT_USAGE)
    found = compile_project(queries, broken, chosen, job.catalog, job.options, arbiter=job.arbiter)
    for made in found:
        source = Source(name=made.query.source, sql=made.query.written)
        if made.error is not None:
            codes.append(report_error(made.error, source, debug=job.debug))
            continue
        for query, plan in made.plans:
            target = plan_file(job.plans, query)
            options = query.front_matter.planned_with(job.options)
            macros = query.expansion.macros if query.expansion is not None else ()
            finding = check_plan(target, plan, made.catalog, options, macros)
            yield _Found(target=target, plan=plan, finding=finding)


def _note(finding: Finding) -> str:
    """Why a plan was written, unless it is the query's first."""
    if finding.status == "missing" or not finding.reasons:
        return ""
    return f" ({'; '.join(finding.reasons)})"
