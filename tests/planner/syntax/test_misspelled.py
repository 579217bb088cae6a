"""Syntax errors stand at the keyword that is misspelled, not where a parser noticed it."""

from __future__ import annotations

import pytest

from stagecoach.planner.errors import AnalysisError, ParseError, SqlError
from stagecoach.planner.syntax.misspelled import at_misspelled_word
from stagecoach.planner.syntax.parse import read_query


@pytest.mark.parametrize(
    ("sql", "word", "keyword"),
    [
        ("SELEC user_id FROM events", "SELEC", "SELECT"),
        ("SELCT k FROM t", "SELCT", "SELECT"),
        ("/* a\n comment */ SELEC k,\n  j FROM t", "SELEC", "SELECT"),
        ("selectt 1", "selectt", "SELECT"),
        ("(SELEC 1)", "SELEC", "SELECT"),
        ("WTIH a AS (SELECT 1) SELECT * FROM a", "WTIH", "WITH"),
    ],
)
def test_the_first_word_is_wrong(sql: str, word: str, keyword: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_query(sql)
    assert caught.value.message == (
        f"[PARSE_SYNTAX_ERROR] syntax error at '{word}'; did you mean {keyword}?"
    )
    assert place_of(caught.value, sql) == sql.index(word)


# Each with the word that Spark's parser stumbles over.
@pytest.mark.parametrize(
    ("sql", "noticed", "word", "keyword"),
    [
        ("SELECT a FORM orders", "orders", "FORM", "FROM"),
        ("SELECT * FROM orders WHER x = 1", "x", "WHER", "WHERE"),
        ("SELECT day\nFROM orders\nGRUOP BY day", "BY", "GRUOP", "GROUP"),
        ("SELECT * FROM orders LIMT 3", "3", "LIMT", "LIMIT"),
        ("SELECT * FROM a x JION b y ON x.i = y.i", "JION", "JION", "JOIN"),
        ("WITH a AS (SELECT 1) SELCT * FROM a", "SELCT", "SELCT", "SELECT"),
        ("SELECT 'a FORM b' x FORM orders", "orders", "FORM", "FROM"),
    ],
)
def test_a_word_before_the_error_is_wrong(sql: str, noticed: str, word: str, keyword: str) -> None:
    at = sql.rindex(noticed)
    error = AnalysisError(
        f"Syntax error at or near '{noticed}'. SQLSTATE: 42601",
        condition="PARSE_SYNTAX_ERROR",
        line=sql.count("\n", 0, at) + 1,
        column=at - sql.rfind("\n", 0, at),
    )
    told = at_misspelled_word(error, sql)
    assert isinstance(told, AnalysisError)
    assert f"syntax error at '{word}'; did you mean {keyword}?" in told.message
    assert place_of(told, sql) == sql.rindex(word)
    assert "orders" in error.message or "near" in error.message  # the first one is as it was


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT room b c FROM t",  # nothing like a keyword
        "SELECT t.form b c FROM t",  # a column
        "SELECT `form` c d FROM t",
        "SELECT 'form' c d FROM t",
        "SELECT a b c FROM t",
    ],
)
def test_other_errors_stay_where_they_are(sql: str) -> None:
    at = sql.index(" FROM") - 1
    error = ParseError("near", condition="PARSE_SYNTAX_ERROR", line=1, column=at + 1)
    assert at_misspelled_word(error, sql) is error


def test_errors_of_other_kinds_stay_as_they_are() -> None:
    error = AnalysisError("no column", condition="UNRESOLVED_COLUMN", line=1, column=8)
    assert at_misspelled_word(error, "SELEC a FROM t") is error
    unplaced = ParseError("wrong", condition="PARSE_SYNTAX_ERROR")
    assert at_misspelled_word(unplaced, "SELEC a FROM t") is unplaced


def test_text_that_is_an_expression_is_no_statement() -> None:
    with pytest.raises(ParseError, match="a query begins with SELECT or WITH"):
        read_query("orders o")
    with pytest.raises(ParseError, match="at 'SELEC'; did you mean SELECT"):
        read_query("SELEC a")


def place_of(error: SqlError, sql: str) -> int:
    assert error.line is not None and error.column is not None
    before = sum(len(line) + 1 for line in sql.split("\n")[: error.line - 1])
    return before + error.column - 1
