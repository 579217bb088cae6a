"""Make the tree of a parsed statement a query, with `IDENTIFIER('…')` and `?` resolved."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from stagecoach.planner.errors import ParseError
from stagecoach.planner.syntax.spark_syntax import position


def as_query(statement: exp.Expr) -> exp.Expr:
    """The statement with Spark's own forms resolved; VALUES as a query.

    Raises:
        ParseError: For IDENTIFIER of what is not a constant text.
    """
    if isinstance(statement, exp.Values):
        query = exp.Select(expressions=[exp.Star()])
        for part in ("with_", "order", "limit", "offset"):
            if statement.args.get(part):
                query.set(part, statement.args[part].pop())
        statement = query.from_(statement, copy=False)
    for node in list(statement.find_all(exp.Anonymous)):
        if node.name.lower() == "identifier" and len(node.expressions) == 1:
            _resolve_identifier(node)
    markers = [m for m in statement.find_all(exp.Placeholder) if m.name in ("", "?")]
    for number, marker in enumerate(sorted(markers, key=lambda m: m.meta.get("start", 0)), 1):
        marker.set("this", str(number))
    return statement


def _resolve_identifier(node: exp.Anonymous) -> None:
    text = _constant_text(node.expressions[0])
    line, column = position(node)
    if text is None:
        is_constant = node.find(exp.Column) is None
        raise ParseError(
            "IDENTIFIER(…) takes a constant text",
            condition=f"NOT_A_CONSTANT_STRING.{'WRONG_TYPE' if is_constant else 'NOT_CONSTANT'}",
            line=line,
            column=column,
        )
    try:
        name = exp.to_table(text, dialect="spark")
    except SqlglotError as error:
        raise ParseError(f"IDENTIFIER('{text}') is not a name", line=line, column=column) from error
    for below in name.walk():
        below.update_positions(node)
    parent = node.parent
    if isinstance(parent, exp.Table) and parent.this is node:
        for part in ("this", "db", "catalog"):
            parent.set(part, name.args.get(part))
        return
    parts = [p.copy() for p in name.parts]
    names = zip(("this", "table", "db", "catalog"), reversed(parts), strict=False)
    node.replace(exp.Column(**dict(names)))


def _constant_text(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Paren):
        return _constant_text(node.this)
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    parts: list[exp.Expr] = []
    if isinstance(node, exp.DPipe):
        parts = [node.this, node.expression]
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "concat":
        parts = node.expressions
    texts = [_constant_text(p) for p in parts]
    if not texts or any(t is None for t in texts):
        return None
    return "".join(t for t in texts if t is not None)
