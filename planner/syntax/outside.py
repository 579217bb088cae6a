"""Forms of Spark's SQL that run a program or a method, found by their tokens alone.

The tree that sqlglot makes is searched for the same things (`syntax.parse`). This look at the
tokens does not depend on how a parser reads them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from stagecoach.planner.errors import ForbiddenSqlError
from stagecoach.planner.syntax.tokens import SqlToken, place_at, token_name

FORBIDDEN_FUNCTIONS = frozenset(
    (
        "java_method",
        "reflect",
        "try_reflect",
        # These read a file of descriptors or a schema from a URL.
        "from_avro",
        "from_protobuf",
        "to_protobuf",
    )
)
"""Functions that call a method of Java or open a file."""

PATH_FORMATS = frozenset(
    (
        "parquet",
        "orc",
        "json",
        "csv",
        "text",
        "avro",
        "delta",
        "iceberg",
        "hudi",
        "binaryfile",
        "libsvm",
        "xml",
        "jdbc",
        "com.databricks.spark.csv",
    )
)
"""What Spark reads a path as, in `format.`path``."""

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_FORBIDDEN_WORDS = frozenset(
    (
        # An option of from_xml and schema_of_xml: the path of a file.
        "rowvalidationxsdpath",
    )
)


def refuse_outside_tokens(sql: str, tokens: Sequence[SqlToken]) -> None:
    """Refuse what would run a program, call a method or open a file.

    Args:
        sql: A text.
        tokens: Those of it that Spark's parser sees.

    Raises:
        ForbiddenSqlError: With the place of what is refused.
    """
    closing = _closing_marks(sql, tokens)
    for position, (token, following) in enumerate(pairwise(tokens)):
        name = token_name(sql, token).lower()
        is_call = sql[following.start] == "("
        if name == "using" and token.kind == "word" and following.kind == "text":
            raise _forbidden(sql, token, "USING '…' runs a program; it is not allowed")
        if is_call and name in FORBIDDEN_FUNCTIONS:
            message = f"function '{name}' reaches outside the query and is not allowed"
            raise _forbidden(sql, token, message)
        if is_call and name == "identifier" and position + 1 in closing:
            inside = tokens[position + 2 : closing[position + 1]]
            behind = tokens[closing[position + 1] + 1 :][:1]
            if behind and sql[behind[0].start] == "(":
                _check_named_function(sql, token, inside)
    for token in tokens:
        if token.kind == "text" and _is_forbidden_text(sql[token.start : token.end]):
            message = "option 'rowValidationXSDPath' opens a file and is not allowed"
            raise _forbidden(sql, token, message)


def _check_named_function(sql: str, call: SqlToken, inside: Sequence[SqlToken]) -> None:
    """Refuse a function named by IDENTIFIER unless one plain text tells which it is."""
    name = sql[inside[0].start + 1 : inside[0].end - 1].lower() if len(inside) == 1 else ""
    if not _PLAIN_NAME.fullmatch(name) or inside[0].kind != "text":
        message = "IDENTIFIER(…) names a function by a plain text only, such as 'abs'"
        raise _forbidden(sql, call, message)
    if name in FORBIDDEN_FUNCTIONS:
        message = f"function '{name}' reaches outside the query and is not allowed"
        raise _forbidden(sql, call, message)


def _is_forbidden_text(text: str) -> bool:
    return any(word in text.lower() for word in _FORBIDDEN_WORDS)


def _closing_marks(sql: str, tokens: Sequence[SqlToken]) -> dict[int, int]:
    """The position of the `)` of each `(`."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for position, token in enumerate(tokens):
        mark = sql[token.start : token.end]
        if mark == "(":
            opened.append(position)
        elif mark == ")" and opened:
            found[opened.pop()] = position
    return found


def _forbidden(sql: str, token: SqlToken, message: str) -> ForbiddenSqlError:
    line, column = place_at(sql, token.start)
    return ForbiddenSqlError(message, line=line, column=column)
