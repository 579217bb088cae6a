"""The parameter values of a run: those given, defaults, and the run's clock.

Parameters whose name starts with `@` are the run's own clock: the first process that needs it
writes it down, so all stages and every re-execution see the same instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import google_crc32c

from stagecoach.infra.errors import StorageRefusedError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.given_parameters import RUN_BOUND_PREFIX, check_given
from stagecoach.planner.plan.literal_text import parse_literal
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.text.time_zones import zone_info

_CLOCK_FORMAT = "%Y-%m-%d %H:%M:%S.%f"


def bind_parameters(
    graph: StageGraph, given: Mapping[str, Literal], store: ObjectStore, root_run_id: str
) -> dict[str, Literal]:
    """A value for every parameter of a graph.

    Args:
        graph: Says which there are, their types and defaults.
        given: Values by name.
        store: Keeps the run's clock.
        root_run_id: The run, or the one that it re-executes.

    Raises:
        ParameterError: A parameter has neither value nor default, or a value is unknown.
    """
    clock = {p.name for p in graph.parameters if p.name.startswith(RUN_BOUND_PREFIX)}
    check_given(graph, [name for name in given if name not in clock])
    bound: dict[str, Literal] = {}
    for spec in graph.parameters:
        if spec.name in given:
            bound[spec.name] = given[spec.name]
        elif spec.name in clock:
            bound[spec.name] = clock_value(spec, run_clock(store, root_run_id), graph.time_zone)
        elif spec.default is not None:
            bound[spec.name] = default_value(graph, spec, spec.default)
    return bound


def default_value(graph: StageGraph, spec: ParameterSpec, text: str) -> Literal:
    """The value of a parameter that nobody gives.

    Args:
        graph: The query, for messages.
        spec: The parameter.
        text: Its default.

    Raises:
        ParameterError: The default is no value of its type.
    """
    try:
        return parse_literal(text, spec.dtype)  # canonical: a timestamp in it is UTC
    except ValueError as error:
        raise ParameterError(
            f"query '{graph.query}': the default of parameter '{spec.name}': {error}"
        ) from error


def clock_value(spec: ParameterSpec, now: datetime, time_zone: str) -> Literal:
    """The value of a parameter of the clock.

    Args:
        spec: The parameter.
        now: The instant, in UTC.
        time_zone: Session time zone.

    Raises:
        ParameterError: The clock has no such parameter.
    """
    match spec.dtype.kind:
        case "timestamp":
            return Literal(spec.dtype, now.strftime(_CLOCK_FORMAT))
        case "timestamp_ntz":
            return Literal(spec.dtype, now.astimezone(zone_info(time_zone)).strftime(_CLOCK_FORMAT))
        case "date":
            return Literal(spec.dtype, now.astimezone(zone_info(time_zone)).strftime("%Y-%m-%d"))
    raise ParameterError(f"the run binds no parameter '{spec.name}' of type {spec.dtype}")


def run_clock(store: ObjectStore, root_run_id: str) -> datetime:
    """The instant of a run, in UTC, the same for all its processes and re-executions."""
    key = layout.run_clock(root_run_id)
    now = datetime.now(UTC).strftime(_CLOCK_FORMAT)
    store.put_if_absent(key, f"{now}\n{_checksum(now)}\n".encode())
    try:
        return parse_clock(store.read_bytes(key))
    except ValueError as error:
        problem = f"{store.uri(key)} is damaged ({error}); start a new run"
        raise StorageRefusedError(problem) from error


def parse_clock(text: bytes) -> datetime:
    """Return the instant of a run's clock with this text.

    Raises:
        ValueError: The text is damaged.
    """
    found, _, rest = text.decode().partition("\n")
    if rest and rest.strip() != _checksum(found):
        raise ValueError("checksum mismatch")
    moment = datetime.strptime(found, _CLOCK_FORMAT).replace(tzinfo=UTC)
    if moment.strftime(_CLOCK_FORMAT) != found:  # cut short, it would be another instant
        raise ValueError("it is cut short")
    return moment


def _checksum(text: str) -> str:
    return f"{google_crc32c.value(text.encode()):08x}"
