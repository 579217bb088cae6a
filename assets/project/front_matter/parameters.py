"""The key `parameters`: the types and defaults of a query's parameters."""

import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, StrictBool, StrictFloat, StrictInt

from stagecoach.assets.project.front_matter.base import Part
from stagecoach.assets.project.front_matter.partitions import PARTITION_PARAMETERS
from stagecoach.assets.project.front_matter.places import AT_KEY, Location
from stagecoach.assets.project.front_matter.values import refuse, refuse_all, scalar_text
from stagecoach.assets.project.names import did_you_mean
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.plan.literal_text import parse_literal
from stagecoach.planner.types import parse_type


class Parameter(Part):
    """A parameter `:name` of the SQL."""

    type: str = "string"
    """Its Spark type; that of the default where it is not given."""
    default: str | None = None
    """Its value where a run gives none, as text; a run must give one where there is none."""


class ParameterMapping(Part):
    """A parameter with its type."""

    type: str | None = None
    """Its Spark type, such as 'decimal(15,2)'."""
    default: str | StrictInt | StrictFloat | StrictBool | None = None
    """Its value where a run gives none."""


_IMPLIED_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (float, "double"),
    (datetime.datetime, "timestamp"),
    (datetime.date, "date"),
)


def _parameter(value: Any) -> Any:
    """A default alone is a parameter of the default's type."""
    if isinstance(value, Part):
        return value
    body = value if isinstance(value, dict) else {"default": value}
    if unknown := [key for key in body if key not in Parameter.model_fields]:
        fix = did_you_mean(unknown[0], Parameter.model_fields)
        refuse_all([((unknown[0], AT_KEY), f"unknown key '{unknown[0]}'{fix}")])
    default, declared = body.get("default"), body.get("type")
    text = None if default is None else scalar_text(default)
    if default is not None and text is None:
        raise refuse(f"a parameter's default must be a single value, not {default!r}")
    if declared is None:
        return {"default": text, "type": _implied_type(default)}
    try:
        dtype = parse_type(str(declared))
    except UnsupportedSqlError as error:
        example = "'date', 'bigint' or 'decimal(15,2)'"
        refuse_all([(("type",), f"{error}; write one of Spark's types, such as {example}")])
    try:
        if text is not None:
            parse_literal(text, dtype)
    except ValueError as error:
        refuse_all([(("default",), f"the default {error}; write a value of that type")])
    return {"default": text, "type": str(dtype)}


def _implied_type(default: Any) -> str:
    if isinstance(default, int) and not isinstance(default, bool):
        return "int" if abs(default) < 1 << 31 else "bigint"
    return next((name for kind, name in _IMPLIED_TYPES if isinstance(default, kind)), "string")


def _parameter_names(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    problems: list[tuple[Location, str]] = []
    for name in value:
        if name in PARTITION_PARAMETERS:
            message = f"parameter '{name}' is bound by Stagecoach to a run's partition; remove it"
            problems.append(((name, AT_KEY), message))
        elif not name.isidentifier() or not name.isascii():
            better = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
            better = f"p{better}" if better[:1].isdigit() else better
            message = f"parameter '{name}' must be letters, digits and '_'; write '{better}'"
            problems.append(((name, AT_KEY), message))
    refuse_all(problems)
    return value


Parameters = Annotated[
    dict[
        str,
        Annotated[
            Parameter,
            BeforeValidator(
                _parameter,
                json_schema_input_type=ParameterMapping
                | str
                | StrictInt
                | StrictFloat
                | StrictBool
                | None,
            ),
        ],
    ],
    BeforeValidator(_parameter_names),
]
