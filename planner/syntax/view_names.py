"""The text of a query with the names of views in place of tables that Spark would not find.

Spark gets the tables of a query as temporary views, whose names have one part. A name of several
parts, and a clause such as `VERSION AS OF 3`, are replaced by the name of one view:

    FROM sales.returns JOIN t VERSION AS OF 3 x  ─▶  FROM `sales.returns` AS `returns`
                                                     JOIN `t@version=3` x
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from stagecoach.planner.syntax.parsed_query import ParsedQuery, full_name
from stagecoach.planner.syntax.text import cut_text
from stagecoach.planner.syntax.tokens import SqlToken, token_name

_KINDS = ("version", "timestamp", "system_time")


def with_view_names(query: ParsedQuery) -> str:
    """Return the text of a query with the names of views.

    A text that cannot be changed so stays as it is: Spark refuses it. That is one with a version
    that is no constant, or with the name of a column behind a table's name of several parts.
    """
    named = query.tree.find_all(exp.Table)
    tables = (n for n in named if not isinstance(n.this, exp.Func))  # such as `range(5)`
    nodes = [n for n in tables if full_name(n) != n.name or len(n.parts) > 1]
    if not nodes or any(len(column.parts) > 2 for column in query.tree.find_all(exp.Column)):
        return query.sql
    tokens = cut_text(query.sql).tokens
    changes: list[tuple[int, int, str]] = []
    for node in nodes:
        start = node.parts[0].meta.get("start")
        place = next((i for i, token in enumerate(tokens) if token.start == start), None)
        end = None if place is None else _end(query.sql, tokens, place, node)
        if start is None or end is None:
            return query.sql
        alias = "" if node.alias else f" AS {_quoted(node.name)}"
        changes.append((start, end, f"{_quoted(full_name(node))}{alias}"))
    text = query.sql
    for start, end, name in sorted(changes, reverse=True):
        text = f"{text[:start]}{name}{text[end:]}"
    return text


def _end(sql: str, tokens: Sequence[SqlToken], place: int, node: exp.Table) -> int | None:
    """Where a table with its version ends; None where the tokens are not what the tree says."""
    last = place + 2 * (len(node.parts) - 1)
    found = [token_name(sql, token) for token in tokens[place : last + 1 : 2]]
    if found != [part.name for part in node.parts]:
        return None
    if not node.args.get("version"):
        return tokens[last].end
    behind = list(_words(sql, tokens[last + 1 : last + 6]))
    first = 1 if behind[:1] == ["for"] else 0
    if behind[first : first + 1] and behind[first] not in _KINDS:
        return None
    operand = last + 1 + first + 3
    if behind[first + 1 : first + 3] != ["as", "of"] or operand >= len(tokens):
        return None
    is_constant = tokens[operand].kind == "text" or behind[first + 3].isdigit()
    return tokens[operand].end if is_constant else None


def _words(sql: str, tokens: Sequence[SqlToken]) -> Iterator[str]:
    return (sql[token.start : token.end].lower() for token in tokens)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
