"""Estimate a number of distinct values as Spark's `approx_count_distinct` does.

A value's hash selects a register by its first `precision` bits, and the register keeps the highest
rank: the position of the first set bit among the others. A *code* holds both, the register times
64 plus the rank. A set of codes has the same registers as the values, and the union of two sets
those of both, so sets of codes are partial states that any engine can build and merge.

Source: Spark's `HyperLogLogPlusPlusHelper`.
"""

from __future__ import annotations

import bisect
import functools
import math

from stagecoach.planner.hyperloglog import constants

PRECISIONS = range(7, 15)
"""Sorted tables of estimates, and sets of codes that are small."""

RANK_BITS = 6
_NEIGHBOURS = 6


def precision_of(deviation: float) -> int | None:
    """Bits that select a register, for a relative standard deviation; None if not in PRECISIONS."""
    bits = 2.0 * math.log(1.106 / deviation) / math.log(2.0)
    # Java's logarithm may differ in the last bit.
    if abs(bits - round(bits)) < 1e-9:
        return None
    return math.ceil(bits) if math.ceil(bits) in PRECISIONS else None


def alpha_m2(precision: int) -> float:
    """The constant by which the harmonic mean of the registers becomes an estimate."""
    m = float(1 << precision)
    return (0.7213 / (1.0 + 1.079 / m)) * m * m


@functools.cache
def bias_steps(precision: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The bias of raw estimates, which is a step function.

    Returns:
        Where steps begin, and the biases: one before the first step and one of each step.
    """
    estimates, biases = constants.raw_estimates(precision), constants.biases(precision)
    starts: list[float] = []
    for low in range(len(estimates) - _NEIGHBOURS):
        nearer = _first_nearer(estimates[low], estimates[low + _NEIGHBOURS])
        beyond = math.nextafter(estimates[low + _NEIGHBOURS - 1], math.inf)
        starts.append(max([min(nearer, beyond), *starts[-1:]]))
    # Beyond the highest estimate Spark takes one neighbour less.
    starts.append(math.nextafter(estimates[-1], math.inf))
    means = []
    for low in range(len(starts) + 1):
        total = 0.0
        neighbours = biases[low : low + _NEIGHBOURS]
        for bias in neighbours:
            total += bias
        means.append(total / len(neighbours))
    return tuple(starts), tuple(means)


def _first_nearer(low: float, high: float) -> float:
    """The least number that is nearer to `high` than to `low`."""
    number = (low + high) / 2
    while (number - high) * (number - high) < (number - low) * (number - low):
        number = math.nextafter(number, -math.inf)
    while not (number - high) * (number - high) < (number - low) * (number - low):
        number = math.nextafter(number, math.inf)
    return number


def bias_of(estimate: float, precision: int) -> float:
    """How much too high a raw estimate is on average."""
    starts, biases = bias_steps(precision)
    return biases[bisect.bisect_right(starts, estimate)]
