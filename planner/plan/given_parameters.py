"""Checks of the parameter values that a query is given, as a text or as a plan.

Tags, the command line and the Python API all give values; each says in its own words how to give
one that is missing.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import TYPE_CHECKING

from stagecoach.planner.errors import ParameterError

if TYPE_CHECKING:
    from stagecoach.planner.plan.stages import StageGraph

RUN_BOUND_PREFIX = "@"
"""How the names of parameters start that the run binds itself: its clock."""


def check_given(graph: StageGraph, given: Collection[str], hint: str = "") -> None:
    """Refuse a value for no parameter of a plan, and a parameter with neither value nor default.

    Args:
        graph: The plan.
        given: Names of the parameters that have a value.
        hint: How to give a value, with the name as `{name}`.

    Raises:
        ParameterError: Naming the first one.
    """
    wanted = {p.name: p for p in graph.parameters if not p.name.startswith(RUN_BOUND_PREFIX)}
    check_known(given, wanted, graph.query)
    for name, spec in wanted.items():
        if name not in given and spec.default is None:
            raise at_its_use(without_value(name, hint), name, graph.sql, graph.query)


def check_known(given: Collection[str], known: Collection[str], query: str = "") -> None:
    """Refuse parameters that no query has.

    Args:
        given: Names that have a value.
        known: Names that may have one.
        query: The query's name; empty if there are several.

    Raises:
        ParameterError: Naming the first of them, the nearest match and all that exist.
    """
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            advice = f"; did you mean '{close[0]}'?" if close else ""
            names = ", ".join(sorted(known)) or "none"
            message = f"unknown parameter '{name}'{advice} (the SQL has: {names})"
            raise ParameterError(f"query '{query}': {message}" if query else message)


def without_value(name: str, hint: str = "") -> ParameterError:
    """The error of a parameter with neither value nor default.

    Args:
        name: The parameter.
        hint: How to give a value, with the name as `{name}`.
    """
    return ParameterError(f"parameter '{name}' has no value{hint.format(name=name)}")


def at_its_use(error: ParameterError, name: str, sql: str, query: str = "") -> ParameterError:
    """The error with the query's name and the place where its text uses the parameter.

    Args:
        error: What is wrong with a parameter.
        name: The parameter.
        sql: The query's text; empty if it is not known.
        query: The query's name; empty if it has none.
    """
    from stagecoach.planner.syntax.parse import parameter_places

    line, column = parameter_places(sql).get(name, (None, None)) if sql else (None, None)
    message = f"query '{query}': {error.message}" if query else error.message
    return ParameterError(message, line=line, column=column)
