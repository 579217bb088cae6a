"""Parameter values: from texts in run tags and front matter to literals of the plan's types."""

from dataclasses import replace

import pytest

from stagecoach.assets.project.front_matter import FrontMatterError, parse_front_matter
from stagecoach.assets.project.parameters import (
    bind_parameters,
    declared_parameters,
    parameter_tags,
    parameters_for,
    with_zone,
)
from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.types import TIMESTAMP, parse_type
from tests.assets.fakes import make_graph


def graph_with(*specs: tuple[str, str, str | None], time_zone: str = "UTC") -> StageGraph:
    parameters = tuple(ParameterSpec(n, parse_type(t), d) for n, t, d in specs)
    clock = ParameterSpec("@now", TIMESTAMP)
    return replace(make_graph(), parameters=(*parameters, clock), time_zone=time_zone)


@pytest.mark.parametrize(
    ("dtype", "text", "value"),
    [
        ("int", " 42 ", 42),
        ("bigint", "-9223372036854775808", -(2**63)),
        ("double", "1e3", 1000.0),
        ("boolean", "TRUE", True),
        ("string", " it's ", " it's "),
        ("decimal(15,2)", "0.5", "0.50"),
        ("decimal(38,10)", "1234567890123456789012345678.0123456789", None),
        ("date", "2024-02-29", "2024-02-29"),
        ("timestamp", "2024-01-31 10:00:00", "2024-01-31 15:00:00.000000"),
        ("timestamp", "2024-01-31T10:00:00+02:00", "2024-01-31 08:00:00.000000"),
        ("timestamp_ntz", "2024-01-31 10:00:00", "2024-01-31 10:00:00.000000"),
    ],
)
def test_values_are_read_by_their_type(dtype: str, text: str, value: object) -> None:
    graph = graph_with(("p", dtype, None), time_zone="America/New_York")
    literal = bind_parameters(graph, {"p": text})["p"]
    assert literal.value == (text if value is None else value)
    assert literal.dtype == parse_type(dtype)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("int", "2147483648"),
        ("int", "1.5"),
        ("boolean", "yes"),
        ("decimal(4,2)", "0.005"),
        ("decimal(4,2)", "100"),
        ("decimal(4,2)", "NaN"),
        ("date", "2024-02-30"),
        ("timestamp_ntz", "2024-01-31T10:00:00Z"),
        ("array<int>", "1"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(dtype: str, text: str) -> None:
    with pytest.raises(ParameterError, match=r"parameter 'p' cannot be"):
        bind_parameters(graph_with(("p", dtype, None)), {"p": text})


def test_missing_and_unknown_values() -> None:
    graph = graph_with(("p", "int", None), ("q", "int", "3"))
    with pytest.raises(ParameterError, match="'p' has no value; set the run tag stagecoach/"):
        bind_parameters(graph, {})
    with pytest.raises(ParameterError, match=r"unknown parameter 'r' \(the SQL has: p, q\)"):
        bind_parameters(graph, {"p": "1", "r": "2"})
    assert list(bind_parameters(graph, {"p": "1"})) == ["p"]


def test_canonical_timestamps_survive_the_tags_in_any_zone() -> None:
    graph = graph_with(("t", "timestamp", None), time_zone="Asia/Tokyo")
    canonical = "2024-01-31 10:00:00.000001"
    tags = parameter_tags(with_zone(graph, {"t": canonical}))
    values = parameters_for(graph, tags, alone=True)
    assert bind_parameters(graph, values)["t"].value == canonical


def test_a_run_of_several_queries_gives_each_its_own_parameters() -> None:
    graph = graph_with(("p", "int", None))
    tags = {**parameter_tags({"p": "1", "other": "2"}), "dagster/x": "y"}
    assert parameters_for(graph, tags, alone=False) == {"p": "1"}
    assert parameters_for(graph, tags, alone=True) == {"p": "1", "other": "2"}


def test_declared_defaults_are_canonical() -> None:
    sql = "/* parameters: {t: 2024-01-31 10:00:00, p: {type: 'decimal(5,2)', default: 1}, r: } */"
    specs = declared_parameters(parse_front_matter(sql), "Asia/Tokyo")
    assert [(s.name, str(s.dtype), s.default) for s in specs] == [
        ("t", "timestamp", "2024-01-31 01:00:00.000000"),
        ("p", "decimal(5,2)", "1.00"),
        ("r", "string", None),
    ]


def test_a_declared_default_must_fit() -> None:
    with pytest.raises(
        FrontMatterError, match="the default 'soon' is not a valid date; write a value"
    ):
        parse_front_matter("/* parameters: {p: {type: date, default: soon}} */")
