"""Checks of the parameter values that a run of a plan is given.

Tags, the command line and the Python API all give values; each says in its own words how to give
one that is missing.
"""

from __future__ import annotations

from collections.abc import Collection

from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.stages import StageGraph

RUN_BOUND_PREFIX = "@"
"""How the names of parameters start that the run binds itself: its clock."""


def check_given(graph: StageGraph, given: Collection[str], hint: str = "") -> None:
    """Refuse a value for no parameter of a query, and a parameter with neither value nor default.

    Args:
        graph: The query.
        given: Names of the parameters that have a value.
        hint: How to give a value, with the name as `{name}`.

    Raises:
        ParameterError: Naming the first one.
    """
    wanted = {p.name: p for p in graph.parameters if not p.name.startswith(RUN_BOUND_PREFIX)}
    if unknown := sorted(set(given) - set(wanted)):
        raise ParameterError(
            f"query '{graph.query}' has no parameter '{unknown[0]}' "
            f"(available: {', '.join(wanted) or 'none'})"
        )
    for name, spec in wanted.items():
        if name not in given and spec.default is None:
            wrong = f"parameter '{name}' has no value{hint.format(name=name)}"
            raise at_its_use(ParameterError(wrong), name, graph.sql, graph.query)


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
