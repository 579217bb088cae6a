"""Estimate the values that aggregates give for a group of rows.

`HAVING sum(quantity) > 300` may let through one group in ten or one in a million, and what is
joined with these groups is planned accordingly. Rows are taken to fall into groups independently,
so that the number of rows in a group has a Poisson distribution and a sum over them a compound one
(mean n·E[x], variance n·E[x²]), which is close to a normal distribution.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from stagecoach.planner.estimates.estimate import (
    ColumnEstimate,
    Estimate,
    default_width,
    value_estimate,
)
from stagecoach.planner.plan.expressions import AggregateCall, ColumnRef, Expression, Literal
from stagecoach.planner.types import DataType


def aggregated(
    call: AggregateCall, dtype: DataType, below: Estimate, groups: float
) -> ColumnEstimate:
    """What is believed of an aggregate over the rows of `below`, which form so many groups."""
    return ColumnEstimate(
        groups, width=default_width(dtype), bell=_bell(call, below.rows / max(groups, 1.0), below)
    )


def _bell(call: AggregateCall, rows: float, below: Estimate) -> NormalDist | None:
    """How the values of all groups are distributed, each of about so many rows."""
    if call.distinct or call.where is not None or rows <= 0:
        return None
    if call.function == "count":
        return NormalDist(rows, math.sqrt(rows))
    if call.function not in ("sum", "avg") or len(call.args) != 1:
        return None
    moments = _moments(call.args[0], below)
    if moments is None:
        return None
    mean, variance = moments
    if call.function == "avg":
        return NormalDist(mean, math.sqrt(variance / rows))
    return NormalDist(rows * mean, math.sqrt(rows * (variance + mean * mean)))


def _moments(value: Expression, below: Estimate) -> tuple[float, float] | None:
    """Mean and variance of a column whose values are spread evenly between its bounds."""
    if isinstance(value, Literal) and isinstance(value.value, int | float):
        return float(value.value), 0.0
    known = value_estimate(value, below) if isinstance(value, ColumnRef) else None
    if known is None or known.low is None or known.high is None:
        return None
    mean, variance = (known.low + known.high) / 2, (known.high - known.low) ** 2 / 12
    return (
        (mean, variance) if math.isfinite(mean) and math.isfinite(mean * mean + variance) else None
    )
