"""Expressions with holes, by the type of their value.

Every function that the planner knows has expressions that prove it in `tests/differential`. Each
column in one of them becomes a hole that takes any expression of the column's type.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import SqlError
from stagecoach.planner.syntax.tokens import SqlToken, tokenize
from stagecoach.planner.types import Field
from tests.differential import cases_collections, cases_json, test_aggregates, window_cases
from tests.differential.function_cases import EITHER, NATIVE, REFUSED
from tests.differential.query_check import SINGLE

_FAMILIES = ("literals", "bits_and_more", "times", "written")
_LAMBDA = re.compile(r"(\w+)\s*->|\(([\w\s,]+)\)\s*->")
_BATCH = 40
# Spark refuses `>>` behind the word ARRAY. The rest depends on which rows are met first, or
# differs in each run.
_LEFT_OUT = re.compile(
    r">>|\b(first|last|any_value|first_value|last_value|uuid|rand\w*|shuffle|now|current_\w+|curdate"
    r"|localtimestamp|monotonically_increasing_id|spark_partition_id|input_file_\w+|unix_timestamp\(\))\b",
    re.IGNORECASE,
)
SMALL = "small"
"""Kind of a small whole number: what asks for it makes rows or texts of its size."""
_SMALL_COLUMNS = {"e": ("k", "n"), "n": ("k", "j"), "g": ("h",)}


@dataclass(frozen=True)
class Hole:
    """Where an expression goes.

    Attributes:
        kind: The type of the expression, or `SMALL`.
        column: The column that stood there.
    """

    kind: str
    column: str


@dataclass(frozen=True)
class Template:
    """An expression with holes.

    Attributes:
        parts: Its text, in order, and between it the holes.
        kind: The type of its value.
    """

    parts: tuple[str | Hole, ...]
    kind: str

    def fill(self, make: Callable[[Hole], str]) -> str:
        """The expression with each hole filled by what `make` returns."""
        return "".join(part if isinstance(part, str) else make(part) for part in self.parts)


def scalar_templates(catalog: MappingCatalog) -> dict[str, list[Template]]:
    """Scalar expressions over the edge tables `e`, `n` and `jt`, by type."""
    over_e = [*_flat(NATIVE.values()), *_flat(REFUSED.values())]
    over_e += _flat(EITHER[family] for family in _FAMILIES)
    over_n = [*_flat(cases_collections.NATIVE.values()), *cases_collections.OTHERS]
    over_jt = [*_flat(cases_json.NATIVE.values())]
    found: dict[str, list[Template]] = defaultdict(list)
    for table, texts in (("e", over_e), ("n", over_n), ("jt", over_jt)):
        for template in _templates(catalog, table, texts):
            found[template.kind].append(template)
    return dict(found)


def aggregate_templates(catalog: MappingCatalog) -> dict[str, list[Template]]:
    """Calls of aggregates over the table of groups, by type."""
    found: dict[str, list[Template]] = defaultdict(list)
    for template in _templates(catalog, "g", _flat(test_aggregates.CALLS.values())):
        found[template.kind].append(template)
    return dict(found)


def window_templates(catalog: MappingCatalog) -> dict[str, list[Template]]:
    """Calls of window functions over the table of groups, each ordered by a key, by type."""
    calls = [*_flat(window_cases.CALLS.values()), *window_cases.ROUNDED, *window_cases.ON_SPARK]
    found: dict[str, list[Template]] = defaultdict(list)
    for template in _templates(catalog, "g", [c for c in calls if "id" in c or " BY " not in c]):
        found[template.kind].append(template)
    return dict(found)


def column_kinds(catalog: MappingCatalog, table: str) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a table."""
    info = catalog.table(table)
    assert info is not None
    return tuple((field.name, str(field.dtype)) for field in info.columns)


def _flat(lists: Iterable[Sequence[str]]) -> list[str]:
    return [text for texts in lists for text in texts if not _LEFT_OUT.search(text)]


def _templates(catalog: MappingCatalog, table: str, texts: Sequence[str]) -> Iterator[Template]:
    columns = {name.lower(): kind for name, kind in column_kinds(catalog, table)}
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        for text, kind in zip(batch, _kinds(catalog, table, batch), strict=True):
            if kind is not None:
                yield Template(tuple(_parts(text, columns, _SMALL_COLUMNS.get(table, ()))), kind)


def _kinds(catalog: MappingCatalog, table: str, texts: Sequence[str]) -> list[str | None]:
    """The types of expressions; None for those that are not planned."""
    fields = _planned(catalog, table, texts)
    if fields:
        return [str(field.dtype) for field in fields]
    if len(texts) == 1:
        return [None]
    half = len(texts) // 2
    return _kinds(catalog, table, texts[:half]) + _kinds(catalog, table, texts[half:])


def _planned(catalog: MappingCatalog, table: str, texts: Sequence[str]) -> Sequence[Field]:
    items = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    try:
        return plan_query(f"SELECT {items} FROM {table}", catalog, SINGLE).result
    except SqlError:
        return ()


def _parts(text: str, columns: Mapping[str, str], small: Sequence[str]) -> Iterator[str | Hole]:
    bound = {name.strip() for found in _LAMBDA.findall(text) for name in ",".join(found).split(",")}
    tokens = [token for token in tokenize(text) if token.kind != "space"]
    done = 0
    for number, token in enumerate(tokens):
        word = text[token.start : token.end].lower()
        if word not in columns or word in bound or not _is_column(text, tokens, number):
            continue
        yield text[done : token.start]
        yield Hole(SMALL if word in small else columns[word], word)
        done = token.end
    yield text[done:]


def _is_column(text: str, tokens: Sequence[SqlToken], number: int) -> bool:
    """Whether a word that is the name of a column stands for it: not a call, a member, an alias."""

    def at(place: int) -> str:
        in_range = 0 <= place < len(tokens)
        return text[tokens[place].start : tokens[place].end].lower() if in_range else ""

    if tokens[number].kind != "word":
        return False
    return at(number + 1) != "(" and at(number - 1) not in (".", "as", "interval")
