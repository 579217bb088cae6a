"""Quoting names and texts."""

from __future__ import annotations

import pytest

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.text.quoting import duckdb_name, duckdb_text, spark_name, spark_text


def test_a_name_may_hold_the_quote() -> None:
    assert duckdb_name('a"b c') == '"a""b c"'
    assert spark_name("a`b c") == "`a``b c`"


def test_a_text_may_hold_quotes_and_escapes() -> None:
    assert duckdb_text("it's \\n") == "'it''s \\n'"
    assert spark_text("it's \\n\n\x001") == "'it\\'s \\\\n\\n\\0001'"


def test_duckdb_holds_no_nul() -> None:
    with pytest.raises(UnsupportedSqlError, match="NUL"):
        duckdb_text("a\x00")
