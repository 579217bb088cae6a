"""Finds files of tests and the queries that they are about.

pipelines/queries/totals.sql ◀── pipelines/tests/totals.yaml, or any YAML file there with `query:`
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagecoach.assets.project.front_matter.places import Problem
from stagecoach.assets.project.names import did_you_mean
from stagecoach.assets.project.queries import Query
from stagecoach.assets.query_tests.parse import QueryTestError, parse_tests
from stagecoach.assets.query_tests.unit import TestCase

TESTS_FOLDER = "tests"
SUFFIXES = (".yaml", ".yml")
_NAMES_QUERY = re.compile(r"^query:", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class FoundTests:
    """The tests of some files.

    Args:
        cases: The tests, in the order of the files.
        problems: What is wrong with files, which have no tests then.
    """

    cases: tuple[TestCase, ...]
    problems: tuple[Problem, ...]


def test_files(folder: Path, queries: Iterable[Query]) -> list[Path]:
    """The files of tests in a folder: those that are named as a query, or that name one.

    Args:
        folder: Where tests are; it need not exist.
        queries: The queries of the project.
    """
    names = {query.name for query in queries}
    found = (path for suffix in SUFFIXES for path in folder.rglob(f"*{suffix}"))
    return sorted(path for path in found if path.stem in names or _names_query(path))


def _names_query(path: Path) -> bool:
    try:
        return _NAMES_QUERY.search(path.read_text(encoding="utf-8-sig")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def read_tests(paths: Sequence[Path], queries: Iterable[Query]) -> FoundTests:
    """Read files of tests.

    Args:
        paths: The files.
        queries: The queries of the project.
    """
    by_name = {query.name: query for query in queries}
    cases: list[TestCase] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(str(path), 1, 1, f"cannot be read: {error}"))
            continue
        try:
            file, places = parse_tests(text, path)
        except QueryTestError as error:
            problems += error.problems
            continue
        name = file.query or path.stem
        query = by_name.get(name)
        if query is None:
            message = f"there is no query '{name}'{did_you_mean(name, by_name)}"
            problems.append(places.problem(("query",), message))
            continue
        cases += (
            TestCase(file=file, index=i, path=path, places=places, query=query)
            for i in range(len(file.tests))
        )
    return FoundTests(cases=tuple(cases), problems=tuple(sorted(set(problems))))
