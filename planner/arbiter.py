"""Who decides about a query that the planner refuses: Spark.

The planner does not know all of Spark's SQL, so its refusals are of two kinds. Some are certain: no
Spark could resolve the name of a table, column or function that exists nowhere. Every other query
is one that Spark may answer: its own analysis is asked, and what it accepts runs as one Spark
stage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from sqlglot import exp

from stagecoach.planner.catalog import Catalog
from stagecoach.planner.errors import (
    FunctionCallError,
    InvalidHintError,
    SqlError,
    UnknownColumnError,
    UnknownFunctionError,
    UnknownTableError,
)
from stagecoach.planner.functions.builtin import is_builtin, similar_names
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.syntax.parsed_query import ParsedQuery
from stagecoach.planner.syntax.spark_syntax import PipeQuery, position
from stagecoach.planner.syntax.text import cut_text
from stagecoach.planner.types import Field

_WORD = re.compile(r"\w+")
# Names that Spark gives to columns by itself: those of generators, VALUES, windows, json_tuple, ….
_GIVEN_BY_SPARK = re.compile(
    r"(_?c|col)\d+|col|collations?|element|end|entry|id|key|keyword|is_reserved|pos|session_window"
    r"|start|value|window|_metadata|spark_grouping_id|grouping__id|current_\w+|local\w+|user"
    r"|session_user",
    re.IGNORECASE,
)


# About what only the catalog knows, and hints, of which Spark gets what the planner understands.
_CERTAIN = (UnknownTableError, UnknownFunctionError, FunctionCallError, InvalidHintError)


class Arbiter(Protocol):
    """Decides about queries that the planner cannot stage."""

    def check(self, graph: StageGraph) -> tuple[Field, ...] | None:
        """Return if Spark accepts the query.

        Args:
            graph: The query as one Spark stage, with its text, tables and parameters.

        Returns:
            The columns of its result; None if they are not known yet.

        Raises:
            SqlError: Spark refuses it; the message names Spark's error condition.
        """


def unknown_function(query: ParsedQuery, catalog: Catalog) -> UnknownFunctionError | None:
    """The error of the first call of a function that Spark and the catalog lack, or None."""
    for call in query.tree.find_all(exp.Anonymous):
        if is_builtin(call.name) or catalog.function(call.name) or call.find_ancestor(exp.Hint):
            continue
        near = similar_names(call.name, catalog.function_names())
        hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
        error = UnknownFunctionError(
            f"function '{call.name}' does not exist{hint}", condition=_condition(call)
        )
        line, column = position(call)
        return error if line is None else error.at(line, column)
    return None


def _condition(call: exp.Anonymous) -> str:
    """Spark's condition for a function that does not exist; empty for the usual one."""
    above = call.parent
    if isinstance(above, exp.Lateral):
        return "ROUTINE_NOT_FOUND"
    qualifier = above.this if isinstance(above, exp.Dot) and above.expression is call else None
    if isinstance(qualifier, exp.Dot) and qualifier.this.name.lower() != "spark_catalog":
        return "REQUIRES_SINGLE_PART_NAMESPACE"  # `a.b.f(…)`: Spark has no nested schemas
    return ""


def is_certain(error: SqlError, query: ParsedQuery, catalog: Catalog) -> bool:
    """Whether Spark is known to refuse a query that the planner refuses.

    An unknown column is certain if its name is nowhere else: no table of the query has it, and it
    is in the text only where a column is read. A hint is certain because Spark only gets the hints
    that the planner understands. Any other refusal may be the planner's fault.
    """
    if isinstance(error, _CERTAIN):
        return True
    if not isinstance(error, UnknownColumnError) or not _WORD.fullmatch(error.name):
        return False
    name = error.name.lower()
    if _GIVEN_BY_SPARK.fullmatch(name) or any(
        isinstance(node, exp.Pivot | PipeQuery) for node in query.tree.walk()
    ):
        return False
    if name in _names_of_tables(query, catalog):
        return False
    text = cut_text(query.sql).text
    written = sum(word.lower() == name for word in _WORD.findall(text))
    read = sum(
        part.name.lower() == name for node in query.tree.find_all(exp.Column) for part in node.parts
    )
    return written == read


def _names_of_tables(query: ParsedQuery, catalog: Catalog) -> frozenset[str]:
    """The columns of the tables that a query reads, with the members of structs."""
    infos = (catalog.table(name) for name, _ in query.tables)
    return frozenset(
        name.lower() for info in infos if info is not None for name in _names_in(info.columns)
    )


def _names_in(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _names_in(field.dtype.fields)
