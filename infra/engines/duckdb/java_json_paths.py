"""Values of JSON texts by a path, with all that Spark makes of wildcards.

Sources: Spark's `JsonPathParser` (a path is parsed loosely), `GetJsonObjectEvaluator` and
`JsonTupleEvaluator`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache
from typing import TypeAlias

from stagecoach.infra.engines.duckdb.java_json_reader import Members, UnclearJsonError, Value
from stagecoach.infra.engines.duckdb.java_json_writer import (
    JsonOutput,
    JsonStyle,
    json_text,
    raw_text,
)


class _Step(Enum):
    """What a path takes that is neither a name nor a position."""

    ALL_ITEMS = auto()
    ALL_MEMBERS = auto()


Path: TypeAlias = tuple["str | int | _Step", ...]

_BLANKS = r"[ \t\n\x0b\f\r]*+"
_STEP = re.compile(
    rf"{_BLANKS}(?P<members>\.\*|\['\*'\])"
    rf"|\.{_BLANKS}(?P<name>[^.\[]+)"
    rf"|{_BLANKS}\['{_BLANKS}(?P<quoted>[^']+)'\]"
    rf"|\[(?:(?P<items>\*)|{_BLANKS}(?P<position>[0-9]+))\]"
)
_END = re.compile(rf"{_BLANKS}\Z")
_MOST_OF_POSITION = 2**63 - 1


class _Quotes(Enum):
    """How a text is written that a path leads to.

    `NONE`: as it is. `ALWAYS`: as JSON. `FLAT`: as JSON, and arrays without their brackets.
    """

    NONE = auto()
    ALWAYS = auto()
    FLAT = auto()


@lru_cache(maxsize=256)
def json_path(text: str) -> Path | None:
    """The steps of a path; None for what is none.

    Raises:
        UnclearJsonError: A position that Spark cannot count to.
    """
    if text[:1] != "$":
        return None
    at, steps = 1, list[str | int | _Step]()
    while found := _STEP.match(text, at):
        at = found.end()
        steps.append(_step(found))
    return tuple(steps) if _END.match(text, at) else None


def _step(found: re.Match[str]) -> str | int | _Step:
    if found["members"]:
        return _Step.ALL_MEMBERS
    if found["items"]:
        return _Step.ALL_ITEMS
    if not found["position"]:
        return found["name"] or found["quoted"]
    position = int(found["position"])
    if position > _MOST_OF_POSITION:
        raise UnclearJsonError("the position of a path is very large")
    return position


def value_at(value: Value, path: Path, style: JsonStyle) -> str | None:
    """The text of what is at a path, as `get_json_object` gives it.

    Raises:
        BrokenJsonError, UnclearJsonError, RecursionError: It cannot be written: see `json_text`
            and `raw_text`.
    """
    output = JsonOutput(style)
    return output.text if _write(value, path, _Quotes.NONE, output) else None


def members_of(value: Members, names: Sequence[str], style: JsonStyle) -> list[str | None]:
    """The text of the last member of each name that is not null, as `json_tuple` gives it.

    Raises:
        BrokenJsonError, UnclearJsonError, RecursionError: One of the members of the names cannot be
            written: see `json_text` and `raw_text`.
    """
    found: dict[str, str] = {}
    for name, item in value:
        if name in names and item is not None:
            found[name] = raw_text(item) if type(item) is str else json_text(item, style)
    return [found.get(name) for name in names]


def _write(value: Value, path: Path, quotes: _Quotes, output: JsonOutput) -> bool:
    """Write what is at the path; whether anything counts as found, be it that less was written."""
    if not path:
        return _write_leaf(value, quotes, output)
    step, rest = path[0], path[1:]
    if isinstance(value, Members) and isinstance(step, str):
        # The first member that has something at the rest of the path.
        return any(
            _write(item, rest, quotes, output)
            for name, item in value
            if name == step and item is not None
        )
    if isinstance(value, list) and isinstance(step, int):
        if step >= len(value):
            return False
        inner = _Quotes.ALWAYS if rest[:1] == (_Step.ALL_ITEMS,) else quotes
        return _write(value[step], rest, inner, output)
    if isinstance(value, list) and step is _Step.ALL_ITEMS:
        if rest[:1] == (_Step.ALL_ITEMS,):
            return _write_array(value, rest[1:], _Quotes.FLAT, output)
        if quotes is _Quotes.ALWAYS:
            return _write_array(value, rest, quotes, output)
        return _write_few(value, rest, quotes, output)
    return False


def _write_leaf(value: Value, quotes: _Quotes, output: JsonOutput) -> bool:
    if quotes is _Quotes.NONE and type(value) is str:
        output.raw(value)
        return True
    if quotes is _Quotes.FLAT and isinstance(value, list):
        return sum([_write_leaf(item, quotes, output) for item in value]) > 0
    output.value(json_text(value, output.style))
    return True


def _write_array(items: list[Value], path: Path, quotes: _Quotes, output: JsonOutput) -> bool:
    output.start_array()
    found = [_write(item, path, quotes, output) for item in items]
    output.end_array()
    return any(found)


def _write_few(items: list[Value], path: Path, quotes: _Quotes, output: JsonOutput) -> bool:
    """An array without its brackets, if the path leads somewhere in one item only."""
    inner = _Quotes.ALWAYS if quotes is _Quotes.NONE else quotes
    buffer = JsonOutput(replace(output.style, in_bytes=False))
    buffer.start_array()
    found = sum([_write(item, path, inner, buffer) for item in items])
    buffer.end_array()
    if found:
        output.value(buffer.text if found > 1 else buffer.text[1:-1])
    return found > 0
