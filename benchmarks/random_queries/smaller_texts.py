"""Every text that a query becomes when one part of it is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_CLAUSES = (
    *("where", "having", "order", "limit", "offset", "group", "distinct", "with_"),
    *("joins", "laterals", "pivots"),
)
# Nothing below these is an expression.
_LEAVES = (
    *(exp.Identifier, exp.Table, exp.TableAlias, exp.Literal),
    *(exp.Null, exp.DataType, exp.Alias),
)
_Step = Callable[[], exp.Expr]


def smaller_texts(sql: str) -> Iterator[str]:
    """Yield the texts without one part, large parts first; some of them are not valid queries."""
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except SqlglotError:
        return
    for number in range(sum(1 for _ in tree.bfs())):
        for step in range(len(_steps(tree, _nth(tree, number)))):
            copy = tree.copy()
            try:
                yield _steps(copy, _nth(copy, number))[step]().sql("spark")
            except (SqlglotError, ValueError):  # the part cannot be left out
                continue


def _nth(tree: exp.Expr, number: int) -> exp.Expr:
    return next(node for position, node in enumerate(tree.bfs()) if position == number)


def _steps(root: exp.Expr, node: exp.Expr) -> list[_Step]:
    """The ways to make a node smaller; each returns the root of the changed tree."""
    return [*_without_clauses(root, node), *_without_members(root, node), *_replaced(root, node)]


def _without_clauses(root: exp.Expr, node: exp.Expr) -> Iterator[_Step]:
    for name in _CLAUSES:
        if node.args.get(name):

            def drop(name: str = name) -> exp.Expr:
                node.set(name, None)
                return root

            yield drop


def _without_members(root: exp.Expr, node: exp.Expr) -> Iterator[_Step]:
    for name, value in node.args.items():
        if not isinstance(value, list) or (len(value) < 2 and name == "expressions"):
            continue
        for index in range(len(value)):

            def drop(name: str = name, index: int = index) -> exp.Expr:
                del node.args[name][index]
                return root

            yield drop


def _replaced(root: exp.Expr, node: exp.Expr) -> Iterator[_Step]:
    """A node gives way to one of those below it, or to NULL."""
    is_root = node.parent is None
    if isinstance(node, _LEAVES) or (is_root and not isinstance(node, exp.SetOperation)):
        return
    below = [
        child
        for child in node.iter_expressions()
        if not isinstance(child, exp.Identifier | exp.TableAlias | exp.DataType)
    ]
    for child in below:

        def lift(child: exp.Expr = child) -> exp.Expr:
            if is_root:
                return child.pop()
            node.replace(child)
            return root

        yield lift
    if isinstance(node, exp.Condition) and not is_root:

        def empty() -> exp.Expr:
            node.replace(exp.null())
            return root

        yield empty
