"""`stagecoach compile`: in, SQL files; out, a stage graph file for each, or a check of those."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.options import (
    catalog_option,
    debug_option,
    open_session,
    planner_options,
    read_settings,
)
from stagecoach.reporting import EXIT_FAILED, Source, describe_error, exit_code
from stagecoach.sources import query_name, read_source
from stagecoach.terminal import configure_logging

if TYPE_CHECKING:
    from planner.catalog import Catalog
    from planner.options import PlannerOptions

DEFAULT_QUERIES = "pipelines/queries"
DEFAULT_PLANS = "plans"


@dataclass(frozen=True, kw_only=True)
class _Project:
    """The queries, and where their plans are."""

    files: tuple[Path, ...]
    folders: bool
    plans: Path
    catalog: Catalog
    options: PlannerOptions
    debug: bool

    def plan_of(self, file: Path) -> Path:
        """The plan file of a query."""
        from stagecoach.compiled import SUFFIX

        return self.plans / f"{query_name(str(file))}{SUFFIX}"

    def orphans(self) -> list[Path]:
        """Plan files without a query, where all queries of a project are looked at."""
        from stagecoach.compiled import SUFFIX

        if not self.folders or not self.plans.is_dir():
            return []
        known = {self.plan_of(file) for file in self.files}
        return sorted(p for p in self.plans.glob(f"*{SUFFIX}") if p not in known)


@click.command(name="compile")
@click.argument("files", metavar="[FILE.sql|FOLDER]…", nargs=-1, type=click.Path(path_type=Path))
@catalog_option
@click.option(
    "--output-dir",
    metavar="DIR",
    default=DEFAULT_PLANS,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the plans are: DIR/NAME.json, NAME being that of the SQL file.",
)
@planner_options
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; exit with 1 and list the plans that are missing or stale, and why.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="With --check: a plan that the statistics of today would change is stale, too.",
)
@click.option("--force", is_flag=True, help="Write every plan, even one that has not changed.")
@debug_option
def compile_(
    files: tuple[Path, ...],
    catalog: str,
    output_dir: Path,
    engine: str | None,
    time_zone: str | None,
    assignments: tuple[str, ...],
    check: bool,
    strict: bool,
    force: bool,
    debug: bool,
) -> None:
    """Write the plans of SQL files as stage graphs, or check those that are committed.

    Without files, all queries in pipelines/queries. A plan is stale when its SQL, the columns of
    its tables, the planner's options or the planner have changed; moved statistics alone make none
    stale.
    """
    if strict and not check:
        raise click.UsageError("--strict needs --check")
    if force and check:
        raise click.UsageError("--check writes nothing, so --force has no meaning with it")
    configure_logging(debug=debug)
    chosen = files or (Path(DEFAULT_QUERIES),)
    session = open_session(
        catalog, None, read_settings(assignments, engine=engine, time_zone=time_zone)
    )
    project = _Project(
        files=_sql_files(chosen),
        folders=any(path.is_dir() for path in chosen),
        plans=output_dir,
        catalog=session.catalog,
        options=session.options,
        debug=debug,
    )
    code = _check(project, strict) if check else _compile(project, force)
    if code:
        raise click.exceptions.Exit(code)


def _sql_files(chosen: Sequence[Path]) -> tuple[Path, ...]:
    found: list[Path] = []
    for path in chosen:
        if path.is_dir():
            found += sorted(path.rglob("*.sql"))
        elif path.exists():
            found.append(path)
        else:
            raise click.UsageError(f"there is no file or folder {path}; name SQL files to compile")
    if not found:
        raise click.UsageError(f"there are no .sql files in {', '.join(map(str, chosen))}")
    names: dict[str, Path] = {}
    for path in dict.fromkeys(found):
        other = names.setdefault(query_name(str(path)).lower(), path)
        if other != path:
            raise click.UsageError(f"{other} and {path} would be the same plan file; rename one")
    return tuple(names.values())


def _compile(project: _Project, force: bool) -> int:
    from stagecoach.compiled import check_plan, compile_query

    codes: list[int] = []
    for file in project.files:
        source, name, target = read_source(str(file)), query_name(str(file)), project.plan_of(file)
        try:
            found = check_plan(target, source.sql, project.catalog, project.options, name=name)
            if found.status == "fresh" and not force:
                click.echo(f"{target}: unchanged")
                continue
            plan = compile_query(source.sql, project.catalog, project.options, name=name)
        except Exception as error:  # noqa: BLE001 - reported; the other files go on
            codes.append(_report(error, source, project.debug))
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # In one step: whoever reads the folder meanwhile sees the old plan or the new one.
        draft = target.with_suffix(".tmp")
        draft.write_text(plan.to_text(), encoding="utf-8")
        draft.replace(target)
        count = len(plan.graph.stages)
        click.echo(f"{target}: {count} stage{'' if count == 1 else 's'}{_note(found.reasons)}")
    return max(codes, default=0)


def _check(project: _Project, strict: bool) -> int:
    from stagecoach.compiled import check_plan

    bad, codes = 0, [0]
    for file in project.files:
        source, name, target = read_source(str(file)), query_name(str(file)), project.plan_of(file)
        try:
            found = check_plan(target, source.sql, project.catalog, project.options, name=name)
        except Exception as error:  # noqa: BLE001 - reported; the other files go on
            codes.append(_report(error, source, project.debug))
            continue
        status = "stale" if strict and found.status == "would change" else found.status
        bad += status in ("stale", "missing")
        click.echo(f"{target}: {status}")
        for reason in found.reasons:
            click.echo(f"  {reason}")
    for path in project.orphans():
        bad += 1
        click.echo(f"{path}: stale\n  there is no query '{path.stem}' any more; delete the file")
    if bad:
        total = len(project.files) + len(project.orphans())
        click.echo(
            f"{bad} of {total} plans are stale or missing; run `stagecoach compile`", err=True
        )
        codes.append(EXIT_FAILED)
    return max(codes)


def _note(reasons: Sequence[str]) -> str:
    return f" ({'; '.join(reasons)})" if reasons else ""


def _report(error: Exception, source: Source, debug: bool) -> int:
    if debug:
        click.echo(traceback.format_exc().rstrip(), err=True)
    click.echo(describe_error(error, source), err=True)
    return exit_code(error)
