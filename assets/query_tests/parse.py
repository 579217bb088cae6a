"""The text of a file of tests → its model, or all mistakes in it with their places."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from stagecoach.assets.project.front_matter.messages import found_problems
from stagecoach.assets.project.front_matter.places import Location, Place, Places, Problem
from stagecoach.assets.query_tests.model import TestFile
from stagecoach.infra.config.yaml_text import compose_yaml, repeated_keys
from stagecoach.planner.errors import StagecoachError

ROWS = "rows"


class QueryTestError(StagecoachError):
    """Files of query tests cannot be used.

    Args:
        problems: All mistakes, in the order of the file.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def parse_tests(text: str, path: str | Path) -> tuple[TestFile, Places]:
    """The tests of a file's text, and where their keys are.

    Args:
        text: YAML.
        path: The file, for messages.

    Raises:
        QueryTestError: With every mistake.
    """
    source = str(path)
    try:
        root = compose_yaml(text)
    except yaml.YAMLError as error:
        raise QueryTestError([_syntax_problem(error, source)]) from error
    if not isinstance(root, yaml.MappingNode):
        message = "a file of tests is a mapping; write 'tests:' and a list below it"
        raise QueryTestError([Problem(source, 1, 1, message)])
    reader = _Reader(source)
    problems = [
        Problem(source, *_place(r.mark), f"key '{r.key}' is given twice; remove one")
        for r in repeated_keys(root)
    ]
    content = reader.construct(root, ())
    problems += reader.problems
    places = Places(source, reader.keys, reader.values)
    if not content.get("tests"):
        message = "the file has no tests; write 'tests:' and a list below it"
        raise QueryTestError([*problems, places.problem(("tests",), message)])
    try:
        found = TestFile.model_validate(content)
    except ValidationError as error:
        problems += (
            places.problem(location, message, at_key=at_key)
            for location, message, at_key in found_problems(error, TestFile)
        )
        raise QueryTestError(sorted(set(problems))) from error
    if problems:
        raise QueryTestError(sorted(set(problems)))
    return found, places


class _Reader:
    """Constructs values and remembers their places; values of rows stay texts, as they are written.

    The type of a column decides what `1998-09-02` or `0.10` is, and YAML would lose digits.
    """

    def __init__(self, source: str) -> None:
        self.keys: dict[Location, Place] = {}
        self.values: dict[Location, Place] = {}
        self.problems: list[Problem] = []
        self._source = source
        self._scalars = yaml.SafeLoader("")

    def construct(self, node: yaml.Node, location: Location) -> Any:
        self.values[location] = _place(node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return [self.construct(item, (*location, i)) for i, item in enumerate(node.value)]
        if _is_cell(location):
            return None if node.tag == "tag:yaml.org,2002:null" else node.value
        try:
            return self._scalars.construct_object(node)
        except (ValueError, yaml.YAMLError):
            message = f"'{node.value}' is not a valid value; correct it, or put it in quotes"
            self.problems.append(Problem(self._source, *self.values[location], message))
        return None

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                message = "a key must be a text; write 'key: value'"
                self.problems.append(Problem(self._source, *_place(key.start_mark), message))
                continue
            inner = (*location, key.value)
            self.keys[inner] = _place(key.start_mark)
            content[key.value] = self.construct(value, inner)
        return content


def _is_cell(location: Location) -> bool:
    """Whether a location is inside a row of `given` or `expect`, in their long or short form."""
    parts = location[2:] if location[:1] == ("tests",) else location
    if parts[:1] == ("given",):
        inner = parts[2:]
    elif parts[:1] == ("expect",):
        inner = parts[1:]
    else:
        return False
    inner = inner[1:] if inner[:1] == (ROWS,) else inner
    return len(inner) >= 2 and isinstance(inner[0], int)


def _place(mark: yaml.Mark) -> Place:
    return mark.line + 1, mark.column + 1


def _syntax_problem(error: yaml.YAMLError, source: str) -> Problem:
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem(source, 1, 1, f"this is not YAML: {error}")
    mark = error.problem_mark or error.context_mark
    place = _place(mark) if mark else (1, 1)
    problem = " ".join(str(error.problem or error.context or error).split())
    return Problem(source, *place, f"this is not YAML: {problem}")
