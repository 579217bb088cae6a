"""Every mistake in a front matter: a message with the file, the line, the column and the fix."""

from pathlib import Path

import pytest

from stagecoach.assets.project.front_matter import FrontMatterError, Problem, parse_front_matter

# YAML, then line and column in it, what is wrong, what to do.
Mistake = tuple[str, int, int, str, str]

KEYS: list[Mistake] = [
    ("ownrs: [a@b.org]", 1, 1, "unknown key 'ownrs'", "did you mean 'owners'?"),
    ("description: d\nOwners: []", 2, 1, "unknown key 'Owners'", "did you mean 'owners'?"),
    ("xyzzy: 1", 1, 1, "unknown key 'xyzzy'", "there are: description, owners"),
    ("pool: a\npool: b", 2, 1, "key 'pool' is given twice, first in line", "remove one"),
    ("on: 1\npool: a", 1, 1, "unknown key 'on'", "there are: description"),
    ("- a\n- b", 1, 1, "must be a mapping", "write 'key: value' lines"),
    ("? [a]\n: b\npool: a", 1, 3, "a key must be a text", "write 'key: value'"),
]
YAML: list[Mistake] = [
    ("description: a: b", 1, 15, "not YAML: mapping values are not allowed", "in quotes"),
    ("owners: [a@b.org\npool: x", 2, 5, "not YAML: expected ',' or ']'", "close the list with ']'"),
    ("tags: {a: b\npool: [x", 2, 5, "not YAML", "close the"),
    ("description: 'never ends", 1, 25, "not YAML: found unexpected end", "close the quotes"),
    ("description: @team", 1, 14, "not YAML: found character '@'", "put the text in quotes"),
    ("description:\n\tx: y", 2, 1, "not YAML: found character '\\t'", "indent with spaces"),
    ('description: "a\\d"', 1, 17, "not YAML: found unknown escape", "single quotes"),
    ("description: *nobody", 1, 14, "not YAML: found undefined alias", "in quotes"),
    ("schedule: 5 *\npool: *x", 2, 7, "not YAML: found undefined alias", "in quotes"),
    ("schedule: * * * * *", 1, 12, "not YAML: expected alphabetic", "put a text that begins with"),
    ("pool: a\n  group: b", 2, 8, "not YAML: mapping values", "check the indentation"),
    ("description: !!python/object:os.system x", 1, 14, "'tag:yaml.org,2002:python", "remove it"),
    ("parameters: {a: 2024-13-01}", 1, 17, "'2024-13-01' is not a valid date", "put it in quotes"),
]
TEXTS: list[Mistake] = [
    ("description: 3", 1, 14, "description must be a text, not 3", "put it in quotes"),
    ("description: [a]", 1, 14, "description must be a text", "write a text"),
    ("owners: [me]", 1, 10, "owner 'me' must be 'team:<name>'", "did you mean 'team:me'?"),
    ("owners:\n  - a@b.org\n  - a@b", 3, 5, "owner 'a@b' must be", "an e-mail address"),
    ("owners: {a: b}", 1, 9, "owners must be a list", "write ["),
    ("tags: 3", 1, 7, "tags must be a mapping", "'key: value' lines"),
    ("tags: [a, {b: c}]", 1, 7, "tags must be a mapping", "'key: value' lines"),
    ("tags: [a, b c]", 1, 11, "tag 'b c' must be at most 63 letters", "use them only"),
    ("tags: [dagster/x]", 1, 8, "is Dagster's own", "leave out 'dagster/'"),
    ("tags:\n  a b: c", 2, 3, "tag 'a b: c'", "use them only"),
    ("tags: {a: b c}", 1, 8, "tag 'a: b c' must be at most 63 letters", "use them only"),
    ("tags: {dagster/x: c}", 1, 8, "is Dagster's own", "leave out 'dagster/'"),
    ("tags: {a: [1]}", 1, 11, "tag 'a' must be a single value", "single value"),
    ("group: my-group", 1, 8, "group 'my-group' must be letters", "write 'my_group'"),
    ("pool: my pool", 1, 7, "pool 'my pool' must be a name without spaces", "write 'my_pool'"),
    ("timeout: 30", 1, 10, "'30' has no unit", "write '30s', '30m' or '30h'"),
    (
        "timeout: 30 minutes",
        1,
        10,
        "'30 minutes' is not a valid duration",
        "such as '90s', '1h 30m'",
    ),
    ("timeout: 0s", 1, 10, "'0s' is too short", "write at least '1s'"),
]
SCHEDULES: list[Mistake] = [
    ("schedule: 5 * *", 1, 11, "it has 3 fields, not 5", "'0 6 * * *' or '@daily'"),
    ('schedule: "0 0 6 * * *"', 1, 11, "it has 6 fields", "leave the field for them out"),
    ('schedule: {cron: "61 * * * *"}', 1, 18, "minute 61 is not", "within 0 and 59"),
    ('schedule: {cron: "0 25 * * *"}', 1, 18, "hour 25 is not", "within 0 and 23"),
    (
        'schedule: "@dayly"',
        1,
        11,
        "'@dayly' is not a valid cron expression",
        "there are @hourly, @daily",
    ),
    ('schedule: "0 0 31 2 *"', 1, 11, "is not a valid cron expression", "it has no next run"),
    ('schedule: "x y z * *"', 1, 11, "is not a valid cron expression", "it has no next run"),
    ("schedule: {timezone: UTC}", 1, 1, "schedule needs the key 'cron'", "add it"),
    (
        'schedule:\n  cron: "@daily"\n  timezone: Europe/Berln',
        3,
        13,
        "'Europe/Berln' is not a valid time zone",
        "did you mean 'Europe/Berlin'?",
    ),
    ('schedule: {corn: "@daily"}', 1, 12, "unknown key 'corn'", "did you mean 'cron'?"),
    ("automation: on_change", 1, 13, "automation cannot be 'on_change'", "did you mean 'on_upstr"),
    (
        "schedule: '@daily'\nautomation: on_upstream_change",
        2,
        13,
        "exclude each other",
        "keep one of them",
    ),
]
PARTITIONS: list[Mistake] = [
    ("partitions: daily", 1, 13, "must be a mapping, not 'daily'", "{by: daily, start: 2024"),
    ("partitions: {start: 2024-01-01}", 1, 13, "need the key 'by'", "{by: daily, start: 2024"),
    ("partitions: {by: dayly}", 1, 18, "'dayly' is not a valid interval", "did you mean 'daily'?"),
    ("partitions: {by: daily, column: d}", 1, 1, "partitions needs the key 'start'", "add it"),
    (
        "partitions: {by: daily, start: 2024-01-01 06:00:00, column: d}",
        1,
        32,
        "start 2024-01-01 06:00:00 is not aligned to the day",
        "write 2024-01-01",
    ),
    (
        "partitions: {by: monthly, start: 2024-01-15, column: d}",
        1,
        34,
        "is not aligned to the month",
        "write 2024-01-01",
    ),
    (
        "partitions: {by: hourly, start: 2024-01-01 06:30, column: d}",
        1,
        33,
        "is not aligned to the hour",
        "write 2024-01-01 06:00:00",
    ),
    (
        "partitions: {by: daily, start: soon}",
        1,
        32,
        "'soon' is not a valid date",
        "write it as 2024-01-31",
    ),
    (
        "partitions: {by: hourly, start: 2024-01-01 06:00:00Z}",
        1,
        33,
        "names no zone",
        "leave the zone out",
    ),
    (
        "partitions:\n  by: daily\n  start: 2024-01-02\n  end: 2024-01-01\n  column: d",
        4,
        8,
        "end 2024-01-01 must come after start 2024-01-02",
        "write a later one",
    ),
    (
        "partitions: {by: weekly, start: 2024-01-01, end: 2024-01-10, column: d}",
        1,
        50,
        "not a whole number of weeks",
        "write 2024-01-15",
    ),
    (
        "partitions: {by: hourly, start: 2024-01-01, column: d, type: date}",
        1,
        62,
        "cannot tell hours apart",
        "write 'timestamp'",
    ),
    (
        "partitions: {by: daily, start: 2024-01-01}",
        1,
        13,
        "partitions need 'column'",
        "name it, or set output.mode",
    ),
    (
        "partitions: {by: daily, start: 2024-01-01, colum: d}",
        1,
        44,
        "unknown key 'colum'",
        "did you mean 'column'?",
    ),
    ("partitions: {by: static, keys: [], column: d}", 1, 32, "must not be empty", "add a value"),
    (
        "partitions: {by: static, keys: [de, no], column: d}",
        1,
        37,
        "the boolean false",
        "put what you wrote in quotes",
    ),
    ("partitions: {by: static, keys: [a, a], column: d}", 1, 36, "given twice", "remove one"),
    ("partitions: {by: static, keys: [a...b], column: d}", 1, 33, "without '...'", "another key"),
    (
        "backfill: run_per_day",
        1,
        11,
        "'run_per_day' is not a valid backfill policy",
        "did you mean 'run_per_partition'?",
    ),
    ("backfill: 7", 1, 11, "backfill cannot be 7", "{max_partitions_per_run: 7}"),
    ("backfill: {max_partitions_per_run: 0}", 1, 36, "must be at least 1, not 0", "larger number"),
    ("backfill: single_run", 1, 11, "backfill needs partitions", "add them, or remove it"),
    (
        "partitions: {by: static, keys: [a], column: c}\nbackfill: single_run",
        2,
        11,
        "gets one :partition_key",
        "write run_per_partition",
    ),
    (
        "partitions: {by: daily, start: 2024-01-01}\noutput: {mode: append}\nbackfill: single_run",
        3,
        11,
        "must tell their rows apart",
        "name the column",
    ),
]
OUTPUTS: list[Mistake] = [
    ("output: orders", 1, 9, "output must be a mapping", "'key: value' lines"),
    ("output: {mode: replce}", 1, 16, "cannot be 'replce'", "did you mean 'replace'?"),
    ("output: {mode: replace_partition}", 1, 16, "needs partitions", "write 'replace'"),
    (
        "partitions: {by: daily, start: 2024-01-01, column: d}\noutput: {mode: replace}",
        2,
        16,
        "remove the partitions of all others",
        "write 'replace_partition', 'append' or 'merge'",
    ),
    ("output: {mode: merge}", 1, 16, "merge needs 'key'", "such as key: [id]"),
    ("output: {key: [id]}", 1, 10, "'key' belongs to mode merge", "write 'mode: merge', or remove"),
    (
        "output: {mode: append, delete_column: gone}",
        *(1, 24, "'delete_column' belongs to mode merge", "or remove it"),
    ),
    ("output: {table: a-b}", 1, 17, "'a-b' cannot be the name", "use letters, digits"),
    ("output: {keep_versions: 0}", 1, 25, "must be at least 1, not 0", "write a larger number"),
    ("output: {keep_versions: '5'}", 1, 25, "must be a number, not '5'", "without quotes"),
    ("output: {partition_by: day}", 1, 24, "must be a list, not 'day'", "write ['day']"),
    ("output: {partition_by: [d, D]}", 1, 28, "column 'D' is given twice", "remove one"),
    ("output: {tabel: t}", 1, 10, "unknown key 'tabel'", "did you mean 'table'?"),
    ("output: {format: publish}", 1, 18, "'publish' is not a format", "mean 'published'?"),
    ("output: {table: a.b}", 1, 17, "'published' has a name of one part, not 'a.b'", "leave out"),
    (
        "output: {format: delta}",
        1,
        9,
        "give output.location: the folder of the Delta table",
        "lake",
    ),
    (
        "output: {format: delta, location: a, catalog: c}",
        1,
        38,
        "of the format 'delta' has no",
        "catalog",
    ),
    (
        "output: {format: delta, location: a, table: b.c}",
        1,
        45,
        "a name of one part, not 'b.c'",
        "namespace",
    ),
    (
        "output: {format: delta, location: gs://b/t}",
        1,
        35,
        "from local folders and from s3://",
        "gs",
    ),
    ("output: {format: iceberg, catalog: c}", 1, 9, "has a namespace and a name", "give output.t"),
    ("output: {format: iceberg, table: a.b}", 1, 9, "give output.catalog", "a mapping"),
    ("output: {format: iceberg, table: a.b, catalog: {uri: x}}", 1, 48, "has no 'name'", "catalog"),
    (
        "output: {format: iceberg, table: a.b, catalog: {name: c, token: x}}",
        *(1, 48, "'catalog.token' has credentials in it", "PYICEBERG_CATALOG__C__TOKEN"),
    ),
    ("output: {location: /a}", 1, 10, "'published' has no 'location'", "remove it"),
]
CHECKS: list[Mistake] = [
    ("checks: {not_null: [a]}", 1, 9, "checks must be a list", "write ["),
    ("checks: [not_null]", 1, 10, "a check is a mapping", "- not_null: [column]"),
    ("checks:\n  - not_nul: [a]", 2, 5, "there is no check 'not_nul'", "mean 'not_null'?"),
    ("checks:\n  - not_null: []", 2, 15, "must not be empty", "add a value"),
    ("checks:\n  - {severity: warn}", 2, 5, "the check has no kind", "there are: not_null"),
    (
        "checks:\n  - unique: [a]\n    not_null: [a]",
        3,
        5,
        "one item has the checks",
        "begin each with '- '",
    ),
    (
        "checks:\n  - unique: [a]\n    severity: fatal",
        3,
        15,
        "severity cannot be 'fatal'",
        "there are: error, warn",
    ),
    (
        "checks:\n  - unique: [a]\n    sevrity: warn",
        3,
        5,
        "unknown key 'sevrity'",
        "did you mean 'severity'?",
    ),
    (
        "checks:\n  - unique: [a]\n    severity: warn\n    blocking: true",
        4,
        15,
        "a warning blocks nothing",
        "leave 'blocking' out",
    ),
    (
        "checks:\n  - unique: [a]\n    blocking: perhaps",
        3,
        15,
        "must be true or false",
        "write one of them",
    ),
    (
        "checks:\n  - unique: [a]\n    name: my check",
        3,
        11,
        "name 'my check' must be letters",
        "write 'my_check'",
    ),
    ("checks:\n  - row_count: {}", 2, 16, "row_count has no bound", "write {min: 1}"),
    (
        "checks:\n  - row_count: {min: 5, max: 1}",
        2,
        30,
        "max 1 is less than min 5",
        "swap them",
    ),
    ("checks:\n  - row_count: {min: -1}", 2, 22, "must be at least 0", "larger number"),
    (
        "checks:\n  - freshness: {within: 10s}",
        2,
        25,
        "Dagster looks once a minute",
        "write at least '1m'",
    ),
    (
        "checks:\n  - accepted_values: {column: a}",
        2,
        5,
        "accepted_values needs the key 'values'",
        "add it",
    ),
    ("checks:\n  - no_rows: {sql: SELECT 1}", 2, 5, "needs the key 'name'", "add it"),
    (
        "checks:\n  - unique: [a]\n  - unique: [a]",
        3,
        5,
        "another check is called 'unique_a', too",
        "give it another 'name'",
    ),
]
OTHERS: list[Mistake] = [
    ("retries: many", 1, 10, "retries must be a mapping", "'key: value' lines"),
    ("retries: -1", 1, 10, "must be at least 0, not -1", "write a larger number"),
    ("retries: {max: 1000}", 1, 16, "must be at most 100", "write a smaller number"),
    ("retries: {max: 3, backoff: exp}", 1, 28, "cannot be 'exp'", "there are: exponential"),
    ("retries: {delay_seconds: 1}", 1, 1, "retries needs the key 'max'", "add it"),
    ("parameters: [a]", 1, 13, "parameters must be a mapping", "'key: value' lines"),
    ("parameters: {a-b: 1}", 1, 14, "parameter 'a-b' must be letters", "write 'a_b'"),
    ("parameters: {a: {typ: int}}", 1, 18, "unknown key 'typ'", "did you mean 'type'?"),
    ("parameters: {a: {type: dato}}", 1, 24, "type 'dato' is not supported", "such as 'date'"),
    (
        "parameters:\n  a: {type: date, default: soon}",
        2,
        28,
        "the default 'soon' is not a valid date",
        "write a value of that type",
    ),
    ("parameters: {a: {default: [1]}}", 1, 17, "must be a single value", "single value"),
    (
        "parameters: {partition_start: 2024-01-01}",
        1,
        14,
        "bound by Stagecoach to a run's partition",
        "remove it",
    ),
]
MISTAKES = [*KEYS, *YAML, *TEXTS, *SCHEDULES, *PARTITIONS, *OUTPUTS, *CHECKS, *OTHERS]
FILE = Path("queries/daily.sql")


def problems_of(sql: str) -> tuple[Problem, ...]:
    with pytest.raises(FrontMatterError) as caught:
        parse_front_matter(sql, FILE)
    return caught.value.problems


def test_there_are_enough() -> None:
    assert len(MISTAKES) >= 100


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m[0].replace("\n", "¶")[:60])
@pytest.mark.parametrize("style", ["block", "lines", "late"])
def test_a_mistake_tells_file_line_and_fix(mistake: Mistake, style: str) -> None:
    yaml, line, column, what, fix = mistake
    if style == "block":
        sql, down, right = f"/*\n---\n{yaml}\n---\nfree text: [\n*/\nSELECT 1", 2, 0
    elif style == "lines":
        body = "\n".join(f"-- {text}" for text in yaml.split("\n"))
        sql, down, right = f"-- ---\n{body}\n-- ---\nSELECT 1", 1, 3
    else:
        body = "\n".join(f"  --{text}" for text in yaml.split("\n"))
        sql, down, right = f"\n\n  -- ---\n{body}\nSELECT 1", 3, 4
    found = problems_of(sql)
    assert len(found) == 1, found
    problem = found[0]
    assert (problem.line - down, problem.column - right) == (line, column), problem
    assert str(problem).startswith(f"queries/daily.sql:{problem.line}:{problem.column}: ")
    assert what in problem.message
    assert fix in problem.message


def test_all_mistakes_of_a_file_are_told_in_its_order() -> None:
    sql = """-- descripton: x
-- ownrs: [me]
-- schedule: {cron: 5 * *, timezone: Europe/Berln, z: 1}
-- backfill: single_run
-- checks:
--   - not_nul: [a]
--   - row_count: {min: 5, max: 1}
--     severity: x
-- tags: {a b: c, dagster/x: 3}
-- tags: {}
-- output: {mode: replace_partition, keep_versions: 0}
SELECT 1"""
    found = problems_of(sql)
    assert [(p.line, p.column) for p in found] == [
        (1, 4), (2, 4), (3, 21), (3, 38), (3, 52), (4, 14),
        (6, 8), (7, 33), (8, 18), (10, 4), (11, 53),
    ]  # fmt: skip
    assert found[5].message == "backfill needs partitions; add them, or remove it"


def test_rules_over_several_keys_do_not_blame_a_key_for_another() -> None:
    found = problems_of("-- partitions: {by: dayly}\n-- backfill: single_run\nSELECT 1")
    assert [p.line for p in found] == [1]


def test_a_cron_expression_can_end_a_block_comment() -> None:
    for yaml in ('schedule: "*/15 * * * *"', "schedule: {cron: 0 */2 * * *}"):
        (problem,) = problems_of(f"/*\n{yaml}\n*/\nSELECT 1")
        assert (problem.line, problem.column) == (2, yaml.index("*/") + 1)
        assert "'*/' ends the comment here" in problem.message
        assert "'0-59/15'" in problem.message


def test_an_alias_of_itself_ends() -> None:
    (problem,) = problems_of("-- tags: &a {b: *a}\nSELECT 1")
    assert problem.message == "front matter: an alias refers to a value that holds it"


def test_text_without_a_file_tells_line_and_column() -> None:
    with pytest.raises(FrontMatterError, match=r"'ownrs'; did you mean 'owners'\? \(line 1, col"):
        parse_front_matter("-- ownrs: []\nSELECT 1")
