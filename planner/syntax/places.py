"""Attach the place in the text to errors that are raised while a node is analysed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagecoach.planner.errors import SqlError
from stagecoach.planner.syntax.parse import position

if TYPE_CHECKING:
    from sqlglot import exp


@contextmanager
def located(node: exp.Expr | None) -> Iterator[None]:
    """Errors of the body that have no place yet get that of the node.

    So the innermost place wins; a node without tokens of its own, or no node, leaves the error to
    the `located` around it.
    """
    try:
        yield
    except SqlError as error:
        line, column = position(node) if node is not None else (None, None)
        if error.line is not None or line is None:
            raise
        raise error.at(line, column) from error
