"""YAML of users: a key given twice is found wherever it is, and an alias of itself is no loop."""

from __future__ import annotations

import pytest
import yaml

from infra.yaml_text import compose_yaml, load_yaml, repeated_keys

TWICE = "a: {b: 1, b: 2}\nc:\n- d: 1\n  e: 2\n  d: 3\na: 4\n"


def test_repeated_keys_are_found_in_the_order_of_the_text() -> None:
    root = compose_yaml(TWICE)
    assert root is not None
    found = [(r.key, r.mark.line, r.mark.column, r.first.line) for r in repeated_keys(root)]
    assert found == [("b", 0, 10, 0), ("d", 4, 2, 2), ("a", 5, 0, 0)]


def test_loading_refuses_them() -> None:
    with pytest.raises(yaml.YAMLError, match="key 'a' is given twice"):
        load_yaml(TWICE)
    assert load_yaml("a: {b: 1}\nc: [{d: 1}, {d: 2}]") == {"a": {"b": 1}, "c": [{"d": 1}, {"d": 2}]}


def test_a_key_that_is_a_list_is_refused_and_no_crash() -> None:
    with pytest.raises(yaml.YAMLError, match="unhashable key"):
        load_yaml("? [a]\n: b\nc: d")


def test_an_alias_of_itself() -> None:
    root = compose_yaml("a: &x {b: *x, b: 1}")
    assert root is not None
    assert [r.key for r in repeated_keys(root)] == ["b"]


def test_errors_are_those_of_python_whatever_the_loader() -> None:
    with pytest.raises(yaml.YAMLError, match="expected ',' or ']'"):
        compose_yaml("a: [b\nc: d")
    assert compose_yaml("") is None
