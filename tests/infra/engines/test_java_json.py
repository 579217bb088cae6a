"""Functions of JSON for texts that DuckDB reads otherwise: values that Spark gave."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stagecoach.infra.engines.duckdb.java_json import (
    json_array_lengths,
    json_object_names,
    json_objects,
    json_tuple_members,
)
from stagecoach.infra.engines.duckdb.java_json_reader import UnclearJsonError

# Text, path, and the text that Spark finds there.
OBJECTS = [
    ("{'a':'x\"y'}", "$.a", 'x"y'),
    ("{'a':['x\"y','\\'']}", "$.a", '["x\\"y","\'"]'),
    ("[\"a ',']", "$[0]", None),
    ('{"a":1} x', "$.a", "1"),
    ('{"a":1,"b":01}', "$.a", None),
    ('{"a":null,"a":1}', "$.a", "1"),
    ("[1,null]", "$[1]", "null"),
    ('{"a":[1.50,-0,1e3,1e-5,1e999]}', "$.a", '[1.5,0,1000.0,1.0E-5,"Infinity"]'),
    ('{"a":{"x":"😀\\u0001/"}}', "$.a", '{"x":"\\uD83D\\uDE00\\u0001/"}'),
    ('{"a":"\\ud83d\\ude00"}', "$.a", "😀"),
    ('{"a":"\\ud800"}', "$.a", None),
    ('{"a":["\\ud800"]}', "$.a", '["\\uD800"]'),
    ('{"a":"x\u0001"}', "$.a", "x\u0001"),
    ("\ufeff[1]", "$[0]", None),
    ("[1", "$[0]", None),
    ("[NaN]", "$[0]", None),
    (f"[{'1' * 1001}]", "$[0]", None),
    ("[" * 1001 + "]" * 1001, "$[0]", None),
    ("[[1,2],[3]]", "$[*][*]", "[1,2,3]"),
    ('[{"b":1},{"b":[2,3]}]', "$[*].b", "[1,[2,3]]"),
    ('[{"b":1},{}]', "$[*].b", "1"),
    ('["😀"]', "$[*]", '"😀"'),
    ('{"a b":1}', "$['a b']", "1"),
    ('{"a":1}', "$.*", None),
    ('{"a":1}', "$. a", "1"),
    ('{"a":1}', "a", None),
    ("1x", "$", None),
    ("1 x", "$", "1"),
    ("truex", "$", None),
    (None, "$", None),
    ("[]", None, None),
]


@pytest.mark.parametrize(("text", "path", "expected"), OBJECTS)
def test_what_is_at_a_path(text: str | None, path: str | None, expected: str | None) -> None:
    assert json_objects(_column(text), _column(path), _column(0)).to_pylist() == [expected]


def test_digits_of_doubles_depend_on_the_version_of_java() -> None:
    texts = _column('{"a":2e23}', '{"a":2e23}')
    found = json_objects(texts, _column("$.a", "$.a"), _column(0, 1))
    assert found.to_pylist() == ["1.9999999999999998E23", "2.0E23"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":2e23}', "$.a"),
        ('{"a":"\\udc00\\udc00"}', "$.a"),
        ('["\\u00\u0130\u0131"]', "$[0]"),
        ("trueé", "$"),
        ("[" * 990 + "]" * 990, "$[0]"),
        ("[1]", f"$[{2**63}]"),
    ],
)
def test_what_only_spark_knows_raises(text: str, path: str) -> None:
    with pytest.raises(UnclearJsonError):
        json_objects(_column(text), _column(path), pa.chunked_array([pa.nulls(1, pa.int64())]))


def test_members_of_tuples_are_the_last_ones_and_break_together() -> None:
    names = ["a", "b", "a"]
    texts = ["{'a':1,'a':2}", '{"a":1,"a":null}', '{"a":1,"b":"\\ud800"}', "[1]", None]
    found = [
        json_tuple_members(
            _column(*texts), _column(*[names] * 5), _column(*[at] * 5), _column(*[0] * 5)
        ).to_pylist()
        for at in range(3)
    ]
    assert found == [["2", "1", None, None, None], [None] * 5, ["2", "1", None, None, None]]


def test_lengths_and_names() -> None:
    texts = _column("['x', [1, 2]] x", "[1,]", "{'a':1,\"a\":2,'\\ud800':{}}", "{'a'}", None)
    assert json_array_lengths(texts).to_pylist() == [2, None, None, None, None]
    assert json_object_names(texts).to_pylist() == [None, None, ["a", "a", "?"], None, None]


def _column(*values: object) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values)])
