"""The text of a `.sql` file → its `FrontMatter`, or all mistakes in it with their places."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from stagecoach.assets.project.front_matter.comment import Comment, leading_comment
from stagecoach.assets.project.front_matter.messages import found_problems
from stagecoach.assets.project.front_matter.model import KNOWN_KEYS, FrontMatter
from stagecoach.assets.project.front_matter.places import (
    FrontMatterError,
    Location,
    Place,
    Places,
    Problem,
)
from stagecoach.assets.project.names import closest
from stagecoach.infra.config.yaml_text import LimitError, compose_yaml, repeated_keys

_MAX_DEPTH = 20
# An unknown key as near as this to a known one makes a comment front matter: with a mistake.
_NEAR = 0.85
_YAML_ADVICE = (
    ("mapping values are not allowed", "put a text with ': ' in quotes, and check the indentation"),
    ("cannot start any token", "put the text in quotes, and indent with spaces"),
    ("expected ',' or ']'", "close the list with ']'"),
    ("expected ',' or '}'", "close the mapping with '}'"),
    ("unexpected end of stream", "close the quotes"),
    ("expected the node content", "close the bracket"),
    ("unknown escape character", "write the text in single quotes"),
    ("could not find expected ':'", "write 'key: value'"),
    ("expected <block end>", "begin all keys of a mapping in the same column"),
    ("undefined alias", "put a text that begins with '*' in quotes"),
    ("expected alphabetic or numeric", "put a text that begins with '*' or '&' in quotes"),
)


def parse_front_matter(sql: str, path: str | Path | None = None) -> FrontMatter:
    """The front matter of the file's text; an empty one where it has none.

    Args:
        sql: The text.
        path: The file, for messages.

    Raises:
        FrontMatterError: With every mistake: YAML that does not parse, keys that are unknown or
            given twice, values that do not fit.
    """
    source = str(path) if path is not None else ""
    comment = leading_comment(sql)
    try:
        root = compose_yaml(comment.text)
    except yaml.YAMLError as error:
        if not comment.fenced and not _looks_like_ours(comment.text):
            return FrontMatter()
        raise FrontMatterError([_syntax_problem(error, comment, source)]) from error
    if not _is_ours(root, comment):
        return FrontMatter()
    if comment.cut_at is not None:
        line, column = comment.cut_at
        raise FrontMatterError([Problem(source, line, column, _CUT)])
    return _Reader(comment, source).read(root)


_CUT = (
    "'*/' ends the comment here, inside of a cron expression; write the front matter as '--' lines"
    ", or a step with a range such as '0-59/15'"
)


def _looks_like_ours(text: str) -> bool:
    return re.search(rf"^({'|'.join(KNOWN_KEYS)}):", text, re.MULTILINE) is not None


def _is_ours(root: yaml.Node | None, comment: Comment) -> bool:
    if root is None:
        return False
    if comment.fenced:
        return True
    if not isinstance(root, yaml.MappingNode):
        return False
    keys = [key.value for key, _ in root.value if isinstance(key, yaml.ScalarNode)]
    return any(
        key in KNOWN_KEYS or (key.islower() and closest(key, KNOWN_KEYS, _NEAR)) for key in keys
    )


def _syntax_problem(error: yaml.YAMLError, comment: Comment, source: str) -> Problem:
    if comment.cut_at is not None:
        return Problem(source, *comment.cut_at, _CUT)
    if not isinstance(error, yaml.MarkedYAMLError):
        line, column = comment.place(0, 0)
        return Problem(source, line, column, f"front matter is not YAML: {error}; remove it")
    problem = " ".join(str(error.problem or error.context or error).split())
    mark = error.problem_mark or error.context_mark
    line, column = comment.place(mark.line, mark.column) if mark else comment.place(0, 0)
    if isinstance(error, LimitError):
        return Problem(source, line, column, f"front matter: {problem}")
    advice = next((fix for words, fix in _YAML_ADVICE if words in problem), None)
    advice = advice or "put texts with special characters in quotes"
    return Problem(source, line, column, f"front matter is not YAML: {problem}; {advice}")


class _Reader:
    """Reads one front matter and collects its problems.

    Args:
        comment: The comment that holds it.
        source: The file, for messages.
    """

    def __init__(self, comment: Comment, source: str) -> None:
        self._comment = comment
        self._source = source
        self._keys: dict[Location, Place] = {}
        self._values: dict[Location, Place] = {}
        self._problems: list[Problem] = []
        self._scalars = yaml.SafeLoader("")
        self._broken: set[str] = set()

    def read(self, root: yaml.Node | None) -> FrontMatter:
        assert root is not None
        for repeated in repeated_keys(root):
            message = (
                f"key '{repeated.key}' is given twice, first in line "
                f"{self._place(repeated.first)[0]}; remove one"
            )
            self._add(repeated.mark, message)
        if not isinstance(root, yaml.MappingNode):
            self._add(root.start_mark, "front matter must be a mapping; write 'key: value' lines")
            raise FrontMatterError(self._problems)
        content = self._construct(root, ())
        places = Places(self._source, self._keys, self._values)
        front_matter = self._validate(content, places)
        if front_matter is None or self._problems:
            raise FrontMatterError(sorted(set(self._problems)))
        return front_matter.located(places)

    def _validate(self, content: Mapping[str, Any], places: Places) -> FrontMatter | None:
        while True:
            # A key without a value is one that is not given.
            given = {k: v for k, v in content.items() if v is not None and k not in self._broken}
            try:
                return FrontMatter.model_validate(given, context={"broken": self._broken})
            except ValidationError as error:
                broken: set[str] = set()
                for location, message, at_key in found_problems(error, FrontMatter):
                    self._problems.append(places.problem(location, message, at_key=at_key))
                # Without the keys that are wrong, the rules over several keys can be looked at.
                broken = {str(item["loc"][0]) for item in error.errors() if item["loc"]}
                if not broken - self._broken:
                    return None
                self._broken |= broken

    def _construct(self, node: yaml.Node, location: Location) -> Any:
        self._values[location] = self._place(node.start_mark)
        if len(location) > _MAX_DEPTH:
            self._refuse(node.start_mark, location, "this is nested too deeply; make it flatter")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return [self._construct(item, (*location, i)) for i, item in enumerate(node.value)]
        try:
            return self._scalars.construct_object(node)
        except ValueError:
            kind = "date" if node.tag.endswith(":timestamp") else "value"
            message = f"'{node.value}' is not a valid {kind}; correct it, or put it in quotes"
        except yaml.YAMLError:
            message = f"'{node.tag}' is not allowed here; remove it"
        self._refuse(node.start_mark, location, message)
        return None

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key.start_mark, location, "a key must be a text; write 'key: value'")
                continue
            # The text as it stands: YAML reads the keys `on` and `no` as booleans.
            inner = (*location, key.value)
            self._keys[inner] = self._place(key.start_mark)
            content[key.value] = self._construct(value, inner)
        return content

    def _refuse(self, mark: yaml.Mark, location: Location, message: str) -> None:
        self._add(mark, message)
        if location:
            self._broken.add(str(location[0]))

    def _add(self, mark: yaml.Mark, message: str) -> None:
        line, column = self._place(mark)
        self._problems.append(Problem(self._source, line, column, message))

    def _place(self, mark: yaml.Mark) -> Place:
        return self._comment.place(mark.line, mark.column)
