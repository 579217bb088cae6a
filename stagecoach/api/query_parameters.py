"""A value for each parameter of a query or of a compiled plan.

How a single value is read is in `stagecoach.api.parameters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stagecoach.api.parameters import HINT, ParameterInput, ParameterValue, resolve_parameters
from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.given_parameters import at_its_use, check_given, check_known

if TYPE_CHECKING:
    from stagecoach.planner.options import PlannerOptions
    from stagecoach.planner.plan.stages import ParameterSpec, StageGraph


def query_parameters(
    sql: str, given: Mapping[str, ParameterInput], *, time_zone: str, name: str
) -> dict[str, ParameterValue]:
    """Return a value for each parameter of a query.

    Args:
        sql: The query; front matter in its leading comment may declare types and defaults.
        given: Values by name.
        time_zone: Zone of timestamps that name none.
        name: What the query is called, for errors.

    Raises:
        ParameterError: A parameter is missing, unknown, NULL or of the wrong type.
    """
    from stagecoach.assets.project.front_matter import parse_front_matter

    declared = parse_front_matter(sql)
    used = used_parameters(sql)
    if used is None:
        # No query that we can parse: whoever reads it next says what is wrong with it.
        used = tuple(dict.fromkeys([*given, *declared.parameter_types]))
    check_known(given, set(used) | set(declared.parameter_types), name)
    values = resolve_parameters(
        used,
        given,
        types=declared.parameter_types,
        defaults=declared.parameter_defaults,
        time_zone=time_zone,
        sql=sql,
        query=name,
    )
    if empty := [p for p, value in values.items() if value.text is None]:
        wrong = f"parameter '{empty[0]}' is NULL, which cannot be bound; write NULL in the SQL"
        raise at_its_use(ParameterError(wrong), empty[0], sql, name)
    return values


def query_options(sql: str, options: PlannerOptions) -> PlannerOptions:
    """Return the options that a query is planned with; its front matter may set some."""
    from stagecoach.assets.project.front_matter import parse_front_matter

    return parse_front_matter(sql).planned_with(options)


def plan_parameters(
    graph: StageGraph, given: Mapping[str, ParameterInput]
) -> dict[str, ParameterValue]:
    """Return the values that are given for a compiled plan; its defaults fill in the others.

    Raises:
        ParameterError: A parameter is missing, unknown or of the wrong type.
    """
    types = {p.name: str(p.dtype) for p in graph.parameters if not p.name.startswith("@")}
    check_given(graph, given, HINT)
    return resolve_parameters(
        list(given),
        given,
        types=types,
        time_zone=graph.time_zone,
        sql=graph.sql,
        query=graph.query,
    )


def specs_of(values: Mapping[str, ParameterValue]) -> tuple[ParameterSpec, ...]:
    """Return what the planner has to know of parameters: their names and types."""
    from stagecoach.planner.plan.stages import ParameterSpec

    return tuple(ParameterSpec(name, value.dtype) for name, value in values.items())


def used_parameters(sql: str) -> Sequence[str] | None:
    """Names of the parameters in the SQL, in order; None where it cannot be parsed."""
    from stagecoach.api.explaining import without_explain
    from stagecoach.planner.errors import SqlError
    from stagecoach.planner.syntax.parse import read_query

    try:
        query = read_query(without_explain(sql))
    except SqlError:
        return None
    return tuple(query.parameters)
