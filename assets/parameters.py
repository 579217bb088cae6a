"""Parameter values of a run: in, texts by name; out, literals of the types that the plan has.

Values are bound as literals, never spliced into SQL. A run carries them as tags
`stagecoach/parameter/<name>`: all its steps see them, re-executions inherit them, and the
launchpad, the command line, schedules and sensors can all set them.
"""

import datetime
import decimal
import zoneinfo
from collections.abc import Mapping

from assets.front_matter import FrontMatter
from planner.errors import ParameterError
from planner.expressions import Literal, LiteralValue
from planner.stages import ParameterSpec, StageGraph
from planner.types import DataType, parse_type

TAG_PREFIX = "stagecoach/parameter/"
RUN_BOUND_PREFIX = "@"


def declared_parameters(
    front_matter: FrontMatter, time_zone: str = "UTC"
) -> tuple[ParameterSpec, ...]:
    """The parameters that the front matter declares, as the planner takes them.

    Raises:
        ParameterError: A default does not fit its type.
    """
    specs: list[ParameterSpec] = []
    for name, default in front_matter.parameters.items():
        dtype = parse_type(front_matter.parameter_types[name])
        text = None if default is None else to_text(parse_value(name, default, dtype, time_zone))
        specs.append(ParameterSpec(name, dtype, text))
    return tuple(specs)


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
    wanted = {p.name: p for p in graph.parameters if not p.name.startswith(RUN_BOUND_PREFIX)}
    if unknown := sorted(set(values) - set(wanted)):
        known = ", ".join(wanted) or "none"
        raise ParameterError(
            f"query '{graph.query}' has no parameter '{unknown[0]}' (available: {known})"
        )
    for name, spec in wanted.items():
        if name not in values and spec.default is None:
            raise ParameterError(
                f"query '{graph.query}': parameter '{name}' has no value; "
                f"set the run tag {TAG_PREFIX}{name}"
            )
    return {
        name: parse_value(name, text, wanted[name].dtype, graph.time_zone)
        for name, text in values.items()
    }


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
        return Literal(dtype=dtype, value=_parse(text, dtype, time_zone))
    except (ValueError, ArithmeticError) as error:
        raise ParameterError(
            f"parameter '{name}' cannot be '{text}'; it must be of type {dtype}"
        ) from error


def to_text(literal: Literal) -> str:
    """The canonical text of a literal's value, in which timestamps are UTC."""
    value = literal.value
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_zone(graph: StageGraph, values: Mapping[str, str]) -> dict[str, str]:
    """Canonical texts, their timestamps with the zone that they have anyway.

    So `parse_value` reads them as they are meant, whatever the session's zone.
    """
    zoned = {p.name for p in graph.parameters if p.dtype.kind == "timestamp"}
    return {k: f"{v}+00:00" if k in zoned else v for k, v in values.items()}


def _parse(text: str, dtype: DataType, time_zone: str) -> LiteralValue:
    """The canonical value (see `planner.expressions.Literal`) that the text spells."""
    if dtype.kind == "string":
        return text
    text = text.strip()
    if dtype.kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError("neither true nor false")
        return text.lower() == "true"
    if dtype.is_integral:
        number = int(text)
        bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[dtype.kind]
        if not -(1 << bits) <= number < 1 << bits:
            raise ValueError("out of range")
        return number
    if dtype.is_floating:
        return float(text)
    if dtype.is_decimal:
        return _decimal(text, dtype)
    if dtype.kind == "date":
        return datetime.date.fromisoformat(text).isoformat()
    if dtype.is_datetime:
        return _timestamp(text, dtype, time_zone)
    raise ValueError(f"no parameter can be of type {dtype}")


def _decimal(text: str, dtype: DataType) -> str:
    with decimal.localcontext(decimal.Context(prec=dtype.precision, traps=[decimal.Inexact])):
        number = decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-dtype.scale))
    if not number.is_finite():
        raise ValueError("not finite")
    return format(number, "f")


def _timestamp(text: str, dtype: DataType, time_zone: str) -> str:
    moment = datetime.datetime.fromisoformat(text)
    if dtype.kind == "timestamp":
        # Canonical texts are UTC without saying so; a value that names a zone is converted.
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zoneinfo.ZoneInfo(time_zone))
        moment = moment.astimezone(datetime.UTC)
    elif moment.tzinfo is not None:
        raise ValueError("names a zone")
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")
