"""`stagecoach test`: runs the tests of queries, in this process or on Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import ProjectRequest, project_options
from stagecoach.arguments.project_files import ChosenFiles
from stagecoach.commands.test_recording import Recording, record_test, recording_options
from stagecoach.terminal.errors import EXIT_FAILED
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise

if TYPE_CHECKING:
    from stagecoach.api.session import Session
    from stagecoach.assets.project.front_matter import Problem
    from stagecoach.assets.project.queries import Query
    from stagecoach.assets.query_tests.run import SparkSide, TestResult, TestRunner
    from stagecoach.assets.query_tests.unit import TestCase

_WORDS = {"passed": "PASS", "failed": "FAIL", "error": "ERROR", "skipped": "SKIP"}


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """The files of tests that are meant, and the queries of the project."""

    paths: tuple[Path, ...]
    queries: tuple[Query, ...]
    names: frozenset[str] | None
    problems: tuple[Problem, ...]
    selected: frozenset[str] | None = None


@click.command()
@click.option(
    "-k",
    "words",
    metavar="TEXT",
    multiple=True,
    help="Run only tests with this text in 'QUERY: NAME', whatever its case; may be repeated.",
)
@click.option(
    "--spark",
    "on_spark",
    is_flag=True,
    help="Run the tests on Spark as well, also those that need it, and compare the rows.",
)
@click.option(
    "--junit",
    metavar="FILE.xml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results as JUnit XML.",
)
@click.option(
    "--record",
    "recorded",
    metavar="QUERY",
    help="Write a test of this query from the first rows of its tables, and run none.",
)
@recording_options
@click.option("--schema", is_flag=True, help="Print the JSON Schema of test files and exit.")
@click.option("--quiet", "-q", is_flag=True, help="Print only tests that did not pass.")
@project_options
def test(
    request: ProjectRequest,
    *,
    words: tuple[str, ...],
    on_spark: bool,
    junit: Path | None,
    recorded: str | None,
    recording: Recording,
    schema: bool,
    quiet: bool,
) -> None:
    """Run the tests of queries over the rows that they give.

    A path is a file of tests, a query, or a folder; without one, all tests of the project run,
    those in the folder `tests` beside the folder of queries. The exit code is 1 if a test did not
    pass.
    """
    if schema:
        from stagecoach.assets.query_tests.schema import schema_text

        click.echo(schema_text(), nl=False)
        return
    from stagecoach.assets.query_tests.files import TESTS_FOLDER

    configure_logging(debug=request.debug)
    if (on_spark or recorded is not None) and not request.debug:
        divert_noise()
    if recorded is not None:
        with request.session() as session:
            project, queries, _ = _queries(request, session)
            runner = _runner(session, queries, on_spark=True)
            folder = project.parent / TESTS_FOLDER
            record_test(session, runner, queries, recorded, recording, folder)
        return
    recording.refuse_given()
    started = time.perf_counter()
    with request.session() as session:
        wanted = _selected(_wanted(request, session), request, session)
        found = _cases(wanted, words)
        for problem in (*wanted.problems, *found.problems):
            click.echo(str(problem))
        runner = _runner(session, wanted.queries, on_spark=on_spark)
        results = []
        for case in found.cases:
            results.append(runner.run(case))
            for line in _result_lines(
                results[-1], quiet=quiet, time_zone=session.options.time_zone
            ):
                click.echo(line)
    found_problems = (*wanted.problems, *found.problems)
    if junit is not None:
        _write_junit(junit, results, found_problems, session.options.time_zone)
    problems = len(found_problems)
    seconds = time.perf_counter() - started
    click.echo(_summary(results, problems, seconds), err=True)
    discard_log()
    if problems or any(result.outcome in ("failed", "error") for result in results):
        raise click.exceptions.Exit(EXIT_FAILED)


# ---------------------------------------------------------------- which tests


@dataclass(frozen=True, kw_only=True)
class _Found:
    cases: tuple[TestCase, ...]
    problems: tuple[Problem, ...]


def _wanted(request: ProjectRequest, session: Session) -> _Wanted:
    """The files that are named, or all of the project.

    Raises:
        click.UsageError: There is no such file, or none at all.
    """
    from stagecoach.assets.query_tests.files import SUFFIXES, TESTS_FOLDER, test_files

    project, queries, problems = _queries(request, session)
    everything = test_files(project.parent / TESTS_FOLDER, queries)
    if not request.named:
        if not everything:
            raise click.UsageError(
                f"there are no tests in {project.parent / TESTS_FOLDER}; "
                "write one as <query>.yaml there"
            )
        return _Wanted(
            paths=tuple(everything), queries=tuple(queries), names=None, problems=tuple(problems)
        )
    paths: list[Path] = []
    names: set[str] = set()
    for path in request.named:
        if path.is_dir():
            inside = test_files(path, queries)
            paths += inside
            if not inside:
                names |= {file.stem for file in path.rglob("*.sql")}
        elif not path.is_file():
            raise click.UsageError(f"there is no file or folder {path}; name tests to run")
        elif path.suffix in SUFFIXES:
            paths.append(path)
        else:
            names.add(path.stem)
    if names:
        paths += [path for path in everything if path not in paths]
    return _Wanted(
        paths=tuple(dict.fromkeys(paths)),
        queries=tuple(queries),
        names=frozenset(names) if names else None,
        problems=tuple(problems),
    )


def _selected(wanted: _Wanted, request: ProjectRequest, session: Session) -> _Wanted:
    """The tests of the queries that are selected."""
    if request.selection is None:
        return wanted
    files = tuple(query.path for query in wanted.queries if query.path is not None)
    project = ChosenFiles(chosen=files, files=files, folder=request.project, whole=False)
    chosen = request.selected(project, session, project.plans).chosen
    return replace(wanted, selected=frozenset(path.stem for path in chosen))


def _queries(
    request: ProjectRequest, session: Session
) -> tuple[Path, Sequence[Query], Sequence[Problem]]:
    """The folder of the project, its queries, and what is wrong with them.

    Raises:
        click.UsageError: There is no such folder.
    """
    from stagecoach.assets.project.queries import name_clashes, read_queries

    project = request.project
    if not project.is_dir():
        project = next((p for p in request.named if p.is_dir() and any(p.rglob("*.sql"))), project)
    if not project.is_dir():
        raise click.UsageError(
            f"there is no folder {project}; name the folder of queries with --project"
        )
    macros = session.base_catalog.macros
    queries, _, problems = read_queries(sorted(project.rglob("*.sql")), macros)
    problems += name_clashes(queries, session.base_catalog.table_names())
    return project, queries, problems


def _cases(wanted: _Wanted, words: Sequence[str]) -> _Found:
    from stagecoach.assets.query_tests.files import read_tests

    found = read_tests(wanted.paths, wanted.queries)
    cases = [
        case
        for case in found.cases
        if (wanted.names is None or case.query.name in wanted.names)
        and (wanted.selected is None or case.query.name in wanted.selected)
        and _is_named(case, words)
    ]
    return _Found(cases=tuple(cases), problems=found.problems)


def _is_named(case: TestCase, words: Sequence[str]) -> bool:
    name = f"{case.query.name}: {case.test.name}".lower()
    return not words or any(word.lower() in name for word in words)


def _runner(session: Session, queries: Sequence[Query], *, on_spark: bool) -> TestRunner:
    from stagecoach.assets.plans.planner import planner_of
    from stagecoach.assets.query_tests.project_tables import ProjectTables
    from stagecoach.assets.query_tests.run import TestRunner
    from stagecoach.assets.query_tests.unit import UnitPlanner
    from stagecoach.infra.engines.protocol import Resources

    plan = planner_of(session.options, _Undecided())
    settings, catalog = session.settings, session.base_catalog
    zone = session.options.time_zone
    return TestRunner(
        planner=UnitPlanner(
            project=ProjectTables(catalog, queries, plan), plan=plan, time_zone=zone
        ),
        resources=Resources(
            time_zone=zone,
            memory_bytes=settings.task_memory_bytes,
            spill_dir=settings.spill_folder,
        ),
        code_path=catalog.code_path,
        spark=_spark(session) if on_spark else None,
    )


def _spark(session: Session) -> SparkSide:
    from stagecoach.infra.runtime.in_memory.on_spark import MemorySpark

    session.on_spark = lambda: None  # it would say that Spark is asked about SQL
    return MemorySpark(
        session=session.spark,
        time_zone=session.options.time_zone,
        code_path=session.base_catalog.code_path,
    )


class _Undecided:
    """Takes a query that the planner cannot stage for one that Spark runs: running it shows."""

    def check(self, graph: object) -> None:
        """Accept the query."""


# ---------------------------------------------------------------- what is printed


def _result_lines(result: TestResult, *, quiet: bool, time_zone: str) -> Iterator[str]:
    from stagecoach.terminal.row_diff import diff_lines
    from stagecoach.terminal.text_tables import printable

    if quiet and result.outcome in ("passed", "skipped"):
        return
    colour = {"passed": "green", "skipped": "yellow"}.get(result.outcome, "red")
    yield f"{click.style(_WORDS[result.outcome], fg=colour)} {printable(result.name)}"
    if result.outcome == "passed":
        return
    place = result.place
    where = f"{place.path}:{place.line}:{place.column}" if place else _place_of(result.case)
    first, *rest = result.message.splitlines() or [""]
    yield f"  {where}: {first}"
    for line in rest:
        yield f"  {line}"
    if result.rows is not None:
        for line in diff_lines(result.rows, time_zone):
            yield f"    {line}"


def _write_junit(
    path: Path, results: Sequence[TestResult], problems: Sequence[Problem], time_zone: str
) -> None:
    from stagecoach.terminal.junit import junit_xml
    from stagecoach.terminal.row_diff import diff_lines

    def details(result: TestResult) -> str:
        rows = [] if result.rows is None else list(diff_lines(result.rows, time_zone))
        return "\n".join([f"{_place_of(result.case)}: {result.message}", *rows])

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(junit_xml(results, problems, details), encoding="utf-8")


def _place_of(case: TestCase) -> str:
    return f"{case.path}:{case.line}"


def _summary(results: Sequence[TestResult], problems: int, seconds: float) -> str:
    counts = {
        word: sum(result.outcome == outcome for result in results)
        for outcome, word in (
            ("passed", "passed"),
            ("failed", "failed"),
            ("error", "not run"),
            ("skipped", "skipped"),
        )
    }
    parts = [f"{count:,} {word}" for word, count in counts.items() if count]
    if problems:
        parts.append(f"{problems} problem{'' if problems == 1 else 's'} in files")
    if waiting := sum(bool(result.on_spark) for result in results):
        parts.append(f"{waiting} of them need Spark: run with --spark")
    return f"{', '.join(parts) or 'no tests'} in {seconds:.1f} s"
