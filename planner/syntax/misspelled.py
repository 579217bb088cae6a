"""Point a syntax error at the misspelled keyword that caused it.

A parser notices a misspelled keyword late: in `SELECT a FORM t` it takes `FORM` for an alias and
stumbles over `t`. An error that is certain is therefore moved to the word before its place if that
is nearly a keyword. Nothing is decided here, as nearly every word can be a name.
"""

from __future__ import annotations

import copy
from typing import TypeVar

from stagecoach.planner.errors import SqlError
from stagecoach.planner.syntax.text import CutText, cut_text
from stagecoach.planner.syntax.tokens import SYNTAX_ERROR, SqlToken, place_at

_KEYWORDS = (
    *("select", "from", "where", "group", "having", "order", "limit", "offset", "with", "values"),
    *("join", "inner", "left", "right", "full", "outer", "cross", "natural", "lateral", "using"),
    *("union", "intersect", "except", "distinct", "qualify", "window", "partition", "over"),
    *("case", "when", "then", "else", "between", "like", "null", "desc"),
)
_FIRST_WORDS = ("select", "with", "from", "values", "table")
_SHORTEST = 5
"""Letters of the shortest keyword in which a wrong letter counts as a slip."""

_Error = TypeVar("_Error", bound=SqlError)


def at_misspelled_word(error: _Error, sql: str) -> _Error:
    """The error at the misspelled keyword before or at its place; else as it is.

    >>> from stagecoach.planner.errors import ParseError
    >>> error = ParseError("near 't'", condition="PARSE_SYNTAX_ERROR", line=1, column=15)
    >>> print(at_misspelled_word(error, "SELECT a FORM t"))
    [PARSE_SYNTAX_ERROR] syntax error at 'FORM'; did you mean FROM? (line 1, column 10)

    Args:
        error: Why a text cannot be parsed.
        sql: The text.
    """
    if error.condition != SYNTAX_ERROR or error.line is None:
        return error
    try:
        cut = cut_text(sql)
    except SqlError:  # its tokens are wrong, and the error says so
        return error
    first = next((t for t in cut.tokens if cut.text[t.start : t.end] != "("), None)
    if first is not None and (meant := _meant(cut, first, _FIRST_WORDS)):
        return _moved(error, cut, first, meant)
    number = _token_at(cut, error.line, error.column or 1)
    for token in reversed(cut.tokens[max(number - 1, 0) : number + 1]):
        if meant := _meant(cut, token, _KEYWORDS):
            return _moved(error, cut, token, meant)
    return error


def _moved(error: _Error, cut: CutText, token: SqlToken, meant: str) -> _Error:
    word = cut.text[token.start : token.end]
    told = copy.copy(error)
    told.message = f"[{error.condition}] syntax error at '{word}'; did you mean {meant.upper()}?"
    return told.at(*place_at(cut.text, token.start))


def _token_at(cut: CutText, line: int, column: int) -> int:
    """Number of the token at a place, or of the last one before it."""
    found = 0
    for number, token in enumerate(cut.tokens):
        if place_at(cut.text, token.start) > (line, column):
            break
        found = number
    return found


def _meant(cut: CutText, token: SqlToken, keywords: tuple[str, ...]) -> str | None:
    """The keyword that a word nearly is; None if it is one, or is like none."""
    word = cut.text[token.start : token.end].lower()
    around = cut.text[max(token.start - 1, 0) : token.start] + cut.text[token.end : token.end + 1]
    if token.kind != "word" or word in _KEYWORDS or "." in around:
        return None
    return next((keyword for keyword in keywords if _is_slip(word, keyword)), None)


def _is_slip(word: str, keyword: str) -> bool:
    """Whether one letter is missing, wrong or too much, or two neighbours are swapped."""
    if word == keyword + "s":
        return False  # `orders` is a name
    if abs(len(word) - len(keyword)) == 1:
        longer, shorter = sorted((word, keyword), key=len, reverse=True)
        return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    wrong = [i for i, (a, b) in enumerate(zip(word, keyword, strict=False)) if a != b]
    if len(word) != len(keyword) or not wrong:
        return False
    if len(wrong) == 1:
        return len(keyword) >= _SHORTEST
    i = wrong[0]
    return wrong == [i, i + 1] and word[i] == keyword[i + 1] and word[i + 1] == keyword[i]
