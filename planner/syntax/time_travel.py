"""`VERSION AS OF` and `TIMESTAMP AS OF` behind the name of a table.

To planning, a table at a version is a table with a name of its own (`versioned_names`). Spark gets
a view of that name instead of the clause, which it would only take for tables of its own catalogs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from stagecoach.planner.syntax.parsed_query import ParsedQuery, full_name
from stagecoach.planner.syntax.spark_syntax import position
from stagecoach.planner.syntax.text import cut_text
from stagecoach.planner.syntax.tokens import SqlToken

_KINDS = ("version", "timestamp", "system_time")


def without_versions(query: ParsedQuery) -> str:
    """Return the text of a query with the names of versions instead of their clauses.

    A text whose clauses are not all constants stays as it is: Spark refuses it.
    """
    nodes = [node for node in query.tree.find_all(exp.Table) if node.args.get("version")]
    if not nodes:
        return query.sql
    nodes.sort(key=position)
    spans = list(_clauses(query.sql, cut_text(query.sql).tokens))
    if len(spans) != len(nodes):
        return query.sql
    text = query.sql
    for node, (start, end) in reversed(list(zip(nodes, spans, strict=True))):
        alias = "" if node.alias else f" AS {_quoted(node.name)}"
        text = f"{text[:start]}{_quoted(full_name(node))}{alias}{text[end:]}"
    return text


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _clauses(sql: str, tokens: Sequence[SqlToken]) -> Iterator[tuple[int, int]]:
    """Where each table with a constant version begins and ends."""
    words = [sql[token.start : token.end].lower() for token in tokens]
    for place in range(1, len(tokens) - 3):
        if words[place] not in _KINDS or words[place + 1 : place + 3] != ["as", "of"]:
            continue
        operand = tokens[place + 3]
        if operand.kind != "text" and not words[place + 3].isdigit():
            continue
        last = place - 2 if words[place - 1] == "for" else place - 1
        first = last
        while first >= 2 and words[first - 1] == ".":
            first -= 2
        yield tokens[first].start, operand.end
