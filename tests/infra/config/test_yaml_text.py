"""YAML of users: a key given twice is found wherever it is, and nothing expands or recurses without bound."""

from __future__ import annotations

import pytest
import yaml

from stagecoach.infra.config.yaml_text import LimitError, compose_yaml, load_yaml, repeated_keys

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


def test_an_alias_of_itself_is_refused() -> None:
    for text in ("a: &x {b: *x, b: 1}", "&x [1, *x]"):
        with pytest.raises(LimitError, match="an alias refers to a value that holds it"):
            compose_yaml(text)


def laughs(levels: int, link: str = "[{}]") -> str:
    """A text whose aliases make nine times as many values at each level."""
    lines = ["a0: &a0 x" if link == "[{}]" else "a0: &a0 {k: v}"]
    for level in range(1, levels):
        nine = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} {link.format(nine)}")
    return "\n".join(lines)


@pytest.mark.parametrize("link", ["[{}]", "{{<<: [{}]}}"], ids=["lists", "merged keys"])
def test_aliases_may_add_some_values_and_not_millions(link: str) -> None:
    assert load_yaml(laughs(4, link))
    with pytest.raises(LimitError, match="aliases make this too large") as caught:
        load_yaml(laughs(12, link))
    assert caught.value.problem_mark is not None
    assert 4 <= caught.value.problem_mark.line <= 6


@pytest.mark.parametrize(("start", "end"), [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_depth_is_limited_before_anything_recurses(start: str, end: str) -> None:
    assert load_yaml(start * 90 + "x" + end * 90)
    for depth in (101, 5_000):
        with pytest.raises(LimitError, match="nested too deeply"):
            load_yaml(start * depth + "x" + end * depth)
        with pytest.raises(LimitError, match="nested too deeply"):
            compose_yaml(start * depth + "x" + end * depth)


def test_an_endless_text_is_refused() -> None:
    with pytest.raises(yaml.YAMLError, match="more than 8 Mi characters"):
        load_yaml("a: '" + "x" * (8 << 20) + "'")


@pytest.mark.parametrize("value", ["2024-13-45", "9" * 5000, "1:" * 3000 + "1"])
def test_a_value_that_there_is_not_has_a_place(value: str) -> None:
    try:
        load_yaml(f"a: 1\nb: {value}")
    except yaml.YAMLError as error:
        assert error.problem_mark.line == 1  # type: ignore[attr-defined]
        assert len(str(error)) < 300
    else:
        assert value.startswith("1:")


def test_errors_are_those_of_python_whatever_the_loader() -> None:
    with pytest.raises(yaml.YAMLError, match="expected ',' or ']'"):
        compose_yaml("a: [b\nc: d")
    assert compose_yaml("") is None
