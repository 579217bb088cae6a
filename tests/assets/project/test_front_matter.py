"""Front matter that is right: every key in every form, where it is found, and its planned columns."""

import datetime
import json
import pickle
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from stagecoach.assets.project.front_matter import (
    KNOWN_KEYS,
    FrontMatter,
    StaticPartitions,
    TimePartitions,
    check_against,
    front_matter_schema,
    parse_front_matter,
    schema_text,
)
from stagecoach.assets.project.parameters import (
    declared_parameters,
    partition_parameters,
    query_parameters,
)
from stagecoach.infra.config.yaml_text import load_yaml
from stagecoach.planner.types import Field, parse_type

ROOT = Path(__file__).parents[3]
EVERYTHING = """\
description: Revenue by day
owners: ["team:sales", ada@example.com]
tags: {domain: sales, tier: 1, fresh: yes}
group: sales/daily
schedule: {cron: "0 6 * * MON-FRI", timezone: Europe/Berlin}
partitions:
  by: daily
  start: 2024-01-01
  end: 2025-01-01
  timezone: Europe/Berlin
  column: day
backfill: {max_partitions_per_run: 7}
output:
  table: daily_revenue
  mode: replace_partition
  partition_by: [day]
  keep_versions: 10
checks:
  - not_null: [day, revenue]
  - unique: day
    severity: warn
  - accepted_values: {column: kind, values: [a, b]}
    name: kinds
  - row_count: {min: 1, max: 1000}
    blocking: false
  - freshness: {within: 26h}
  - no_rows: {name: positive, sql: SELECT * FROM daily_revenue WHERE revenue < 0}
retries: {max: 3, delay_seconds: 10, backoff: linear}
pool: warehouse
timeout: 1h 30m
recover: false
incremental: true
stages: ops
parameters: {floor: 0, region: {type: string}}"""


def parse(yaml: str) -> FrontMatter:
    return parse_front_matter(f"/*\n---\n{yaml}\n---\n*/\nSELECT 1", "q.sql")


def columns(**types: str) -> tuple[Field, ...]:
    return tuple(Field(name, parse_type(dtype)) for name, dtype in types.items())


def test_every_key() -> None:
    found = parse(EVERYTHING)
    assert set(KNOWN_KEYS) - found.model_fields_set == {"automation"}
    assert found.owners == ("team:sales", "ada@example.com")
    assert found.recover is False
    assert found.incremental is True
    assert found.stages == "ops"
    assert found.tags == {"domain": "sales", "tier": "1", "fresh": "true"}
    assert found.schedule is not None
    assert found.schedule.timezone == "Europe/Berlin"
    assert isinstance(found.partitions, TimePartitions)
    assert found.partitions.start == datetime.datetime(2024, 1, 1)
    assert not found.backfill_policy.is_single_run
    assert found.output_table("q") == "daily_revenue"
    assert [c.check_name for c in found.checks] == [
        "not_null_day_revenue", "unique_day", "kinds", "row_count", "freshness", "positive",
    ]  # fmt: skip
    assert [c.is_blocking for c in found.checks] == [True, False, True, False, True, True]
    assert found.timeout == datetime.timedelta(minutes=90)
    assert found.parameter_defaults == {"floor": "0", "region": None}


def test_shorthands_and_defaults() -> None:
    found = parse("schedule: '@daily'\nretries: 2\nowners: a@b.org")
    assert found.schedule is not None
    assert (found.schedule.cron, found.schedule.timezone) == ("@daily", "UTC")
    assert found.retries is not None
    assert (found.retries.max, found.retries.backoff) == (2, "exponential")
    assert found.owners == ("a@b.org",)
    assert (found.output_mode, found.output_table("q")) == ("replace", "q")
    time = "partitions: {by: daily, start: 2024-01-01, column: d}"
    assert parse(time).output_mode == "replace_partition"
    assert parse(time).backfill_policy.max_partitions_per_run == 1
    assert parse(f"{time}\nbackfill: single_run").backfill_policy.is_single_run
    assert parse(f"{time}\nbackfill: run_per_partition") != parse(f"{time}\nbackfill: single_run")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("26h", 93_600),
        ("1h 30m", 5400),
        ("90s", 90),
        ("1d", 86_400),
        ("1w", 604_800),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse(f"timeout: {text}").timeout == datetime.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "cron", ["0 6 * * *", "*/15 * * * *", "0 0 1,15 * *", "@weekly", "30 4 * JAN SUN", "0 0 L * *"]
)
def test_cron_expressions_that_dagster_takes(cron: str) -> None:
    sql = f"-- schedule: {{cron: '{cron}'}}\nSELECT 1"
    schedule = parse_front_matter(sql).schedule
    assert schedule is not None
    assert schedule.cron == cron


def test_empty_keys_are_not_given() -> None:
    assert parse("description:\nowners:\nchecks:\npartitions:") == FrontMatter()


def test_where_it_was_does_not_make_it_another() -> None:
    one = parse("pool: a\ngroup: b")
    other = parse_front_matter("-- group: b\n-- pool: a\nSELECT 1")
    assert one == other
    copy = pickle.loads(pickle.dumps(one))
    assert copy.places.problem(("pool",), "x") == one.places.problem(("pool",), "x")


@pytest.mark.parametrize(
    "comment",
    [
        "-- Description: what an ordinary comment says\n-- Author: Ada",
        "-- note: this is about owners: many",
        "/* Output: one row per day */",
        "-- TODO: [",
    ],
)
def test_comments_with_colons_are_ordinary(comment: str) -> None:
    assert parse_front_matter(f"{comment}\nSELECT 1") == FrontMatter()


# ---------------------------------------------------------------- what Dagster says to it


def test_names_alone_are_tags_without_a_value() -> None:
    assert parse("tags: [finance, daily]").tags == {"finance": "", "daily": ""}


@pytest.mark.parametrize("owner", ["team:x-1", "ada.b+c@mail.example.org"])
def test_owners_tags_groups_and_pools_are_those_of_dagster(owner: str) -> None:
    found = parse(f"owners: ['{owner}']\ntags: {{ns/a-b.c: d_e-f.g}}\ngroup: a/b_1\npool: p-1/x")

    @dg.asset(
        owners=list(found.owners),
        tags=found.tags,
        group_name=found.group,
        pool=found.pool,
    )
    def one() -> None: ...

    assert dg.Definitions(assets=[one])


def test_static_keys_are_those_of_dagster() -> None:
    partitions = parse(
        "partitions: {by: static, keys: [de, 'no', 'a b', 'ü/x'], column: c}"
    ).partitions
    assert isinstance(partitions, StaticPartitions)
    assert dg.StaticPartitionsDefinition(list(partitions.keys)).get_partition_keys()


# ---------------------------------------------------------------- parameters of the partition


@pytest.mark.parametrize(
    ("partitions", "types"),
    [
        ("by: daily, start: 2024-01-01", {"start": "date", "end": "date", "key": "string"}),
        (
            "by: hourly, start: 2024-01-01",
            {"start": "timestamp", "end": "timestamp", "key": "string"},
        ),
        (
            "by: monthly, start: 2024-01-01, type: timestamp",
            {"start": "timestamp", "end": "timestamp", "key": "string"},
        ),
        ("by: static, keys: [a]", {"key": "string"}),
    ],
)
def test_a_partition_has_parameters(partitions: str, types: dict[str, str]) -> None:
    found = parse(f"partitions: {{{partitions}, column: c}}\nparameters: {{a: 1}}")
    expected = [(f"partition_{name}", dtype, None) for name, dtype in types.items()]
    assert [(p.name, str(p.dtype), p.default) for p in partition_parameters(found)] == expected
    assert [p.name for p in declared_parameters(found)] == ["a", *(name for name, _, _ in expected)]
    used = query_parameters("SELECT :partition_key", found)
    assert [p.name for p in used] == ["a", "partition_key"]


def test_a_query_without_partitions_has_none() -> None:
    assert partition_parameters(FrontMatter()) == ()


# ---------------------------------------------------------------- the planned result


RESULT = columns(
    day="date", at="timestamp", n="bigint", name="string", m="map<string,int>", l="array<int>"
)


@pytest.mark.parametrize(
    ("yaml", "line", "message"),
    [
        ("checks:\n- not_null: [n, Naem]", 2, "column 'Naem' is not in the result; did you mean 'name'?"),
        ("checks:\n- unique: [zzz]", 2, "'zzz' is not in the result; there are: day, at, n"),
        ("checks:\n- unique: [m]", 2, "a map<string,int>, cannot be compared"),
        (
            "checks:\n- accepted_values:\n    column: n\n    values: [1, x]",
            4,
            "'x' is not a valid bigint, the type of column 'n'",
        ),
        ("output: {partition_by: [dya]}", 1, "column 'dya' is not in the result; did you mean 'day'"),
        ("output: {partition_by: [l]}", 1, "an array<int>, cannot be a folder's name"),
        (
            "output: {partition_by: [day, at, n, name, m, l]}",
            1,
            "all columns of the result would be folders",
        ),
        ("output: {mode: merge, key: [nn]}", 1, "column 'nn' is not in the result; did you mean"),
        ("output: {mode: merge, key: l}", 1, "'l', a array<int>, cannot be a key"),
        ("output: {mode: merge, key: n, delete_column: gone}", 1, "'gone' is not in the result"),
        ("output: {mode: merge, key: n, delete_column: Name}", 1, "'name' is string, not boolean"),
        ("partitions:\n  {by: daily, start: 2024-01-01, column: d}", 2, "column 'd' is not in the"),
        ("partitions:\n  {by: daily, start: 2024-01-01, column: n}", 2, "not a date or timestamp"),
        ("partitions:\n  {by: hourly, start: 2024-01-01, column: day}", 2, "use a timestamp"),
        ("partitions: {by: static, keys: [a], column: n}", 1, "'n' is bigint, and keys are texts"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit(yaml: str, line: int, message: str) -> None:
    problems = check_against(parse(yaml), RESULT)
    assert message.replace("an array", "a array") in " | ".join(p.message for p in problems)
    assert {(p.path, p.line) for p in problems} == {("q.sql", line + 2)}


def test_columns_that_fit_whatever_their_case() -> None:
    yaml = (
        "partitions: {by: daily, start: 2024-01-01, column: DAY}\noutput: {partition_by: [Day]}\n"
        "checks:\n- not_null: [M, l]\n- unique: [L, NAME]\n"
        "- accepted_values: {column: Day, values: [2024-01-01]}"
    )
    assert check_against(parse(yaml), RESULT) == []


def test_partitions_that_are_merged_need_no_column() -> None:
    found = parse(
        "partitions: {by: daily, start: 2024-01-01}\n"
        "output: {mode: merge, key: id, partition_by: [day]}"
    )
    assert (found.output_mode, found.output.key) == ("merge", ("id",))


def test_the_delete_column_is_not_a_column_of_the_table() -> None:
    """So checks of the table do not find it, and it cannot be a part of the key."""
    result = columns(id="bigint", gone="boolean")
    output = "output: {mode: merge, key: [id], delete_column: GONE}"
    assert check_against(parse(output), result) == []
    (problem,) = check_against(parse(output + "\nchecks: [{not_null: [gone]}]"), result)
    assert "column 'gone' is not in the result" in problem.message
    (problem,) = check_against(parse(output.replace("[id]", "[id, gone]")), result)
    assert "column 'gone' is not in the result" in problem.message


def test_a_column_that_is_there_twice() -> None:
    (problem,) = check_against(parse("checks: [{not_null: [a]}]"), columns(a="int", A="int"))
    assert "the result has 2 columns 'a'" in problem.message


# ---------------------------------------------------------------- the published schema


def test_the_published_schema_is_up_to_date() -> None:
    published = (ROOT / "docs" / "query-file.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(), "run `make query-schema`"


def test_the_schema_describes_every_key() -> None:
    schema = front_matter_schema()
    assert tuple(schema["properties"]) == KNOWN_KEYS
    for definition in (schema, *schema["$defs"].values()):
        assert definition["additionalProperties"] is False
        assert definition["description"]
        for name, body in definition["properties"].items():
            assert body.get("description"), name
    assert json.loads(schema_text()) == schema


def test_everything_fits_the_schema() -> None:
    content = json.loads(json.dumps(load_yaml(EVERYTHING), default=str))
    assert list(misfits(content, front_matter_schema(), front_matter_schema())) == []
    content["checks"][0]["nul"] = 1
    content["retries"]["backoff"] = "x"
    assert len(list(misfits(content, front_matter_schema(), front_matter_schema()))) == 2


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "array": (list,), "object": (dict,), "null": (type(None),),
}  # fmt: skip


def misfits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """Enough of JSON Schema to check ours."""
    if reference := schema.get("$ref"):
        return misfits(value, root["$defs"][reference.rpartition("/")[2]], root)
    for key in ("anyOf", "oneOf"):
        if key in schema and all(misfits(value, option, root) for option in schema[key]):
            return [f"{value!r} is none of {key}"]
    found: list[str] = []
    if "type" in schema and not isinstance(value, _TYPES[schema["type"]]):
        return [f"{value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{value!r} is none of {schema['enum']}")
    if isinstance(value, dict):
        properties, extra = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{key} is missing" for key in schema.get("required", ()) if key not in value]
        for key, item in value.items():
            inner = properties.get(key, extra)
            if inner is False:
                found.append(f"{key} is unknown")
            elif isinstance(inner, dict):
                found += misfits(item, inner, root)
    if isinstance(value, list):
        for item in value:
            found += misfits(item, schema.get("items", {}), root)
    return found


def test_the_docs_have_every_key() -> None:
    text = (ROOT / "docs" / "user-guide" / "query-files.md").read_text(encoding="utf-8")
    schema = front_matter_schema()
    names = {key for part in (schema, *schema["$defs"].values()) for key in part["properties"]}
    assert [
        name for name in sorted(names) if f"`{name}" not in text and f"{name}:" not in text
    ] == []
    rows = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert tuple(rows[: len(KNOWN_KEYS)]) == KNOWN_KEYS
