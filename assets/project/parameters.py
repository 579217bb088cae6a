"""The parameters that a query declares, and the values that a run binds to them.

Values are bound as literals, never spliced into SQL. A run carries them as tags
`stagecoach/parameter/<name>`: all its steps see them, re-executions inherit them, and the
launchpad, the command line, schedules and sensors can all set them.
"""

from collections.abc import Mapping

from stagecoach.assets.project.front_matter import FrontMatter
from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.given_parameters import at_its_use, check_given
from stagecoach.planner.plan.literal_text import parse_literal, to_text
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.syntax.parse import parameter_places
from stagecoach.planner.types import DataType, parse_type

TAG_PREFIX = "stagecoach/parameter/"


def declared_parameters(
    front_matter: FrontMatter, time_zone: str = "UTC"
) -> tuple[ParameterSpec, ...]:
    """The parameters that the front matter declares, as the planner takes them.

    Those of the partition (`partition_parameters`) come last.

    Raises:
        ParameterError: A default does not fit its type.
    """
    specs: list[ParameterSpec] = []
    for name, parameter in front_matter.parameters.items():
        dtype, text = parse_type(parameter.type), parameter.default
        if text is not None:
            text = to_text(parse_value(name, text, dtype, time_zone))
        specs.append(ParameterSpec(name, dtype, text))
    return (*specs, *partition_parameters(front_matter))


def partition_parameters(front_matter: FrontMatter) -> tuple[ParameterSpec, ...]:
    """The parameters that a run binds to its partition; none for a query without partitions."""
    if front_matter.partitions is None:
        return ()
    types = front_matter.partitions.parameter_types
    return tuple(ParameterSpec(name, parse_type(dtype)) for name, dtype in types.items())


def query_parameters(
    sql: str, front_matter: FrontMatter, time_zone: str = "UTC"
) -> tuple[ParameterSpec, ...]:
    """The declared parameters and, of those of the partition, the ones that the SQL uses.

    So a run need not have a value for a parameter of the partition that decides about nothing.
    """
    declared = declared_parameters(front_matter, time_zone)
    if front_matter.partitions is None:
        return declared
    used = parameter_places(sql)
    return tuple(p for p in declared if p.name in used or p.name in front_matter.parameters)


def parameter_tags(values: Mapping[str, str]) -> dict[str, str]:
    """The run tags that carry these values."""
    return {f"{TAG_PREFIX}{name}": value for name, value in values.items()}


def parameters_for(graph: StageGraph, tags: Mapping[str, str], *, alone: bool) -> dict[str, str]:
    """The values that a run's tags carry for a query.

    Args:
        graph: The query.
        tags: The run's tags.
        alone: Whether the run is of this query only: then a value that it has no parameter for is
            a mistake, which `bind_parameters` will report; else it may be another query's.
    """
    values = {k.removeprefix(TAG_PREFIX): v for k, v in tags.items() if k.startswith(TAG_PREFIX)}
    known = {p.name for p in graph.parameters}
    return {name: text for name, text in values.items() if alone or name in known}


def bind_parameters(graph: StageGraph, values: Mapping[str, str]) -> dict[str, Literal]:
    """Literals for the values that a run was given; defaults and clock are left to the runtime.

    Raises:
        ParameterError: A value is missing, does not fit its type, or belongs to no parameter.
    """
    check_given(graph, values, f"; set the run tag {TAG_PREFIX}{{name}}")
    types = {p.name: p.dtype for p in graph.parameters}
    found: dict[str, Literal] = {}
    for name, text in values.items():
        try:
            found[name] = parse_value(name, text, types[name], graph.time_zone)
        except ParameterError as error:
            raise at_its_use(error, name, graph.sql, graph.query) from error
    return found


def parse_value(name: str, text: str, dtype: DataType, time_zone: str) -> Literal:
    """The literal that the text spells.

    Args:
        name: The parameter's name, for messages.
        text: The value; a timestamp without a zone is one of the session's zone.
        dtype: Its type.
        time_zone: The session's zone.

    Raises:
        ParameterError: The text is no value of the type.
    """
    try:
        return parse_literal(text, dtype, time_zone)
    except ValueError as error:
        raise ParameterError(
            f"parameter '{name}' cannot be '{text}'; it must be of type {dtype}"
        ) from error


def with_zone(graph: StageGraph, values: Mapping[str, str]) -> dict[str, str]:
    """Canonical texts, their timestamps with the zone that they have anyway.

    So `parse_value` reads them as they are meant, whatever the session's zone.
    """
    zoned = {p.name for p in graph.parameters if p.dtype.kind == "timestamp"}
    return {k: f"{v}+00:00" if k in zoned else v for k, v in values.items()}
