"""The spelling in which a SQL text is parsed, and in which Spark gets it.

Spark never gets a text as it was written. Comments become spaces, so that no rule about where one
ends can decide what runs, and hints are written anew from those that are known. Every other token
keeps its position, so that places in messages are those of the written text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.planner.syntax.hints import check_hint, known_hints
from stagecoach.planner.syntax.outside import refuse_outside_tokens
from stagecoach.planner.syntax.tokens import HIDDEN, SYNTAX_ERROR, SqlToken, placed_error, tokenize

VARIABLE_MARK = "${"
"""How a reference to a variable of Spark, its configuration or its environment begins."""


@dataclass(frozen=True)
class CutText:
    """A text cut into the tokens that Spark's parser sees.

    Attributes:
        text: The text with its comments blanked out; it keeps its length and its lines.
        tokens: All but spaces and comments. Their places are those in the written text, too.
    """

    text: str
    tokens: tuple[SqlToken, ...]


def cut_text(sql: str) -> CutText:
    """Cut a text into tokens.

    Raises:
        ParseError: The text is not made of Spark's tokens, or a hint has quoted texts in it.
    """
    return _spelled(sql, sent=False)


def sent_text(sql: str) -> CutText:
    """Cut a text, and spell it as Spark gets it: without hints that Spark ignores.

    Raises:
        ParseError: As `cut_text`.
    """
    return _spelled(sql, sent=True)


def _spelled(sql: str, *, sent: bool) -> CutText:
    tokens = list(tokenize(sql))
    visible = tuple(token for token in tokens if token.kind not in HIDDEN)
    pieces: list[str] = []
    before = ""  # the last token that Spark's parser sees
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        text = sql[token.start : token.end]
        if token.kind in HIDDEN:
            pieces.append(_blank(text))
            continue
        if token.kind == "hint_end":
            message = "syntax error: there is no comment or hint to close here"
            raise placed_error(message, sql, token.start, SYNTAX_ERROR)
        if token.kind == "hint_start":
            if before.upper() not in ("SELECT", "*/"):
                message = "syntax error: a hint belongs right behind SELECT"
                raise placed_error(message, sql, token.start, SYNTAX_ERROR)
            end = _hint_end(sql, tokens, position)
            hint = tokens[position:end]
            check_hint(sql, hint)
            pieces.append(_spelled_hint(sql, token, hint, tokens[end], sent=sent))
            before, position = "*/", end + 1
            continue
        pieces.append(text)
        before = text
    return CutText("".join(pieces), visible)


def _hint_end(sql: str, tokens: Sequence[SqlToken], position: int) -> int:
    for index in range(position, len(tokens)):
        if tokens[index].kind == "hint_end":
            return index
    message = "syntax error: the comment or hint that begins here has no closing */"
    raise placed_error(message, sql, tokens[position - 1].start)


def _spelled_hint(
    sql: str, start: SqlToken, hint: Sequence[SqlToken], end: SqlToken, *, sent: bool
) -> str:
    if not sent:
        return "".join(
            _blank(sql[t.start : t.end]) if t.kind in HIDDEN else sql[t.start : t.end]
            for t in (start, *hint, end)
        )
    known = known_hints(sql, hint)
    text = f"/*+{known}*/" if known else ""
    return text + " " * (end.end - start.start - len(text))


def _blank(text: str) -> str:
    if text == " ":
        return text
    return "".join("\n" if character == "\n" else " " for character in text)


@dataclass(frozen=True)
class SparkText:
    """A SQL text in the only form in which Spark gets one.

    `syntax.parse.spark_text` makes one of a user's text, which it reads as a query first. What the
    planner has written is made into one here.

    Attributes:
        text: The text, without comments and without hints that Spark ignores.
        is_parsed: Whether the planner has parsed it, and so looked for what is not allowed in its
            tree, too. A text that only its tokens are known of needs a Spark that walks its plan.

    Raises:
        ParseError: The text is not made of Spark's tokens.
        ForbiddenSqlError: It would run a program, call a method or open a file.
    """

    text: str
    is_parsed: bool = True

    def __post_init__(self) -> None:
        cut = sent_text(self.text)
        refuse_outside_tokens(self.text, cut.tokens)
        object.__setattr__(self, "text", cut.text)

    @property
    def has_variables(self) -> bool:
        """Whether Spark's substitution of variables would change the text."""
        return VARIABLE_MARK in self.text
