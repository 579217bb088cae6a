"""Spark's lexer and ours on random texts; `make fuzz-lexers` compares 200,000."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlglot.tokenizer_core import Token

from benchmarks.lexers.comparison import LexerComparison
from benchmarks.lexers.texts import random_texts
from stagecoach.planner.errors import ParseError
from stagecoach.planner.syntax.agreement import check_agreement
from stagecoach.planner.syntax.parse import StagecoachSpark
from stagecoach.planner.syntax.text import cut_text
from tests.security.bypasses import BYPASSES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXTS = 4_000


@pytest.mark.spark
def test_random_texts_are_cut_as_spark_cuts_them(spark: SparkSession) -> None:
    comparison = LexerComparison(spark.newSession())
    texts = [*BYPASSES.values(), *random_texts(20_261_123, _TEXTS)]
    assert list(comparison.differences(texts)) == []
    assert comparison.counts.texts - comparison.counts.refused > _TEXTS // 10
    assert comparison.counts.parsed > 0


@pytest.mark.spark
def test_the_comparison_sees_a_difference(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = LexerComparison(spark.newSession())
    monkeypatch.setattr("benchmarks.lexers.comparison._sent", lambda text: text)
    (found,) = comparison.differences(["SELECT 1 -- a"])
    assert "has a comment" in found.what


@pytest.mark.parametrize(
    ("sql", "cut"),
    [
        ("SELECT 'a''b'", lambda tokens: tokens[:-1]),  # a token is missing
        ("SELECT 'a' 'b'", lambda tokens: [tokens[0], joined(tokens[1], tokens[2])]),
        ("SELECT 'ab' AS c", lambda tokens: [tokens[0], shorter(tokens[1]), *tokens[2:]]),
        ("SELECT `a`", lambda tokens: [tokens[0]]),
        ("SELECT /*+ a */ 1", lambda tokens: [tokens[0], shorter(tokens[1]), tokens[2]]),
    ],
)
def test_tokens_of_sqlglot_that_differ_are_refused(sql: str, cut: object) -> None:
    tokens = StagecoachSpark().tokenize(sql)
    check_agreement(cut_text(sql), tokens)
    assert callable(cut)
    with pytest.raises(ParseError, match="cannot be read as Spark reads it"):
        check_agreement(cut_text(sql), cut(tokens))


def joined(first: Token, second: Token) -> Token:
    return Token(first.token_type, "", 1, 1, first.start, second.end)


def shorter(token: Token) -> Token:
    return Token(token.token_type, token.text, 1, 1, token.start, token.end - 1)
