"""Error blocks and exit codes."""

from __future__ import annotations

import pytest

from stagecoach.assets.project.front_matter import FrontMatterError, parse_front_matter
from stagecoach.infra.errors import (
    ConfigError,
    CredentialsError,
    ExecutorError,
    QueryFailedError,
    SparkUnavailableError,
    StorageError,
    TaskFailedError,
)
from stagecoach.infra.storage.object_store import ObjectMissingError
from stagecoach.planner.errors import (
    AnalysisError,
    CatalogError,
    OptionError,
    ParameterError,
    ParseError,
    StagecoachError,
)
from stagecoach.terminal.errors import Source, describe_error, exit_code

SOURCE = Source("q.sql", "SELECT a,\n\tb FROM t\nWHERE c")


def test_block_shows_the_line_with_a_caret() -> None:
    error = AnalysisError("column 'b' not found", line=2, column=2)
    assert describe_error(error, SOURCE).splitlines() == [
        "error: column 'b' not found",
        "  --> q.sql:2:2",
        "   |",
        " 2 | \tb FROM t",
        "   | \t^",
    ]


def test_place_beyond_the_text_still_names_the_file() -> None:
    assert describe_error(ParseError("cut off", line=9, column=1), SOURCE).endswith("--> q.sql")
    assert "3:8" in describe_error(ParseError("cut off", line=3, column=99), SOURCE)


def test_error_without_a_source() -> None:
    assert describe_error(CatalogError("no catalog")) == "error: no catalog"


def test_spark_message_loses_trace_and_plan_and_gets_our_excerpt() -> None:
    text = (
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL (line 3, position 7) ==\nc / 0\n^^^^^\n"
        "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.divideByZeroError(Q.scala:1)\n"
    )
    error = QueryFailedError("q", "DIVIDE_BY_ZERO", text)
    block = describe_error(error, SOURCE)
    assert block.splitlines()[:2] == [
        "error: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
        "  --> q.sql:3:7",
    ]
    assert "org.apache" not in block
    assert exit_code(error) == 1


def test_spark_refusal_of_the_sql_is_a_usage_error() -> None:
    text = "[UNRESOLVED_ROUTINE] f. SQLSTATE: 42883; line 3 pos 6"
    error = QueryFailedError("q", "UNRESOLVED_ROUTINE", text)
    assert exit_code(error) == 2
    assert describe_error(error, SOURCE).splitlines()[:2] == [
        "error: [UNRESOLVED_ROUTINE] f. SQLSTATE: 42883",
        "  --> q.sql:3:7",
    ]


def test_bug_is_named_as_one_without_a_traceback() -> None:
    block = describe_error(KeyError("x"))
    assert "internal error (KeyError)" in block
    assert "--debug" in block
    assert "Traceback" not in block


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ParseError("x"), 2),
        (AnalysisError("x"), 2),
        (ParameterError("x"), 2),
        (OptionError("x"), 2),
        (CatalogError("x"), 2),
        (ConfigError("x"), 2),
        (FrontMatterError([]), 2),
        (StorageError("x"), 1),
        (TaskFailedError("s", 1, "x"), 1),
        (StagecoachError("x"), 1),
        (RuntimeError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_each_mistake_in_front_matter_is_a_block_with_its_place() -> None:
    sql = "-- ownrs: []\n-- pool: a b\nSELECT 1"
    with pytest.raises(FrontMatterError) as caught:
        parse_front_matter(sql)
    text = describe_error(caught.value, Source("q.sql", sql))
    assert text.count("error: ") == 2
    assert "error: unknown key 'ownrs'; did you mean 'owners'?\n  --> q.sql:1:4\n" in text
    assert " 2 | -- pool: a b\n   |          ^" in text


@pytest.mark.parametrize(
    ("error", "is_examined"),
    [
        (ExecutorError("an executor lacks duckdb"), True),
        (SparkUnavailableError("no Java"), True),
        (CredentialsError("expired"), True),
        (StorageError("cannot write a: no space left on device"), True),
        (ObjectMissingError("cannot read a: it does not exist"), False),
        (ConfigError("setting `warm` is 'x'"), False),
        (AnalysisError("column 'b' not found"), False),
        (KeyError("x"), False),
    ],
)
def test_errors_that_the_doctor_can_explain_name_it(error: Exception, is_examined: bool) -> None:
    assert ("`stagecoach doctor`" in describe_error(error)) is is_examined
