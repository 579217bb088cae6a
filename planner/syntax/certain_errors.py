"""Syntax errors that tokens alone prove, whatever parser reads them.

Nearly every keyword can be a name in Spark (`SELECT FROM t` has the column `FROM`), so only
brackets and operators prove anything.
"""

from __future__ import annotations

from stagecoach.planner.errors import ParseError
from stagecoach.planner.syntax.text import CutText
from stagecoach.planner.syntax.tokens import SYNTAX_ERROR, SqlToken, placed_error

_FIRST_WORDS = frozenset(("select", "with", "from", "values", "table"))
_OPENING = {")": "(", "]": "["}
# Binary and prefix operators; not `*`, which is a column list, too, nor `>`, which may end a type.
_OPERATORS = frozenset("=</%&^|~!+-:,")
_ENDS = frozenset(",);]")


def certain_error(cut: CutText) -> ParseError | None:
    """Why Spark is sure to refuse a text by its syntax; None if it may not.

    It does not begin as a query does, its brackets do not match, an operator or comma has nothing
    behind it, or a semicolon is not at the end.
    """
    texts = [cut.text[token.start : token.end].lower() for token in cut.tokens]
    if next((text for text in texts if text != "("), "") not in _FIRST_WORDS:
        message = "syntax error: a query begins with SELECT or WITH"
        return ParseError(message, condition=SYNTAX_ERROR, line=1, column=1)
    operators = _OPERATORS if "<" in texts else _OPERATORS | {">"}
    opened: list[tuple[str, SqlToken]] = []
    for token, text, following in zip(cut.tokens, texts, [*texts[1:], ";"], strict=True):
        if text in ("(", "["):
            opened.append((text, token))
            is_wrong = following == "," or (text, following) == ("[", "]")
        elif text == ";":
            is_wrong = following != ";"
        elif text in _OPENING:
            is_wrong = not opened or opened.pop()[0] != _OPENING[text]
        else:
            is_wrong = text in operators and following in _ENDS
        if is_wrong:
            message = f"syntax error near '{text}'"
            return placed_error(message, cut.text, token.start, SYNTAX_ERROR)
    if opened:
        text, token = opened[-1]
        message = f"syntax error: this '{text}' is not closed"
        return placed_error(message, cut.text, token.start, SYNTAX_ERROR)
    return None
