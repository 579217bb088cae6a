"""Least-squares fits of what was measured by the terms of `docs/scale.md`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.stage_costs.measure import Shuffle

TERMS: dict[str, Callable[[Shuffle], int]] = {
    "map task": lambda s: s.tasks,
    "partition": lambda s: s.partitions,
    "range": lambda s: s.ranges,
}


@dataclass(frozen=True)
class Fit:
    """A quantity as a linear function of terms.

    Args:
        name: The field of `Shuffle`.
        each: By term, how much one more adds.
        base: What is left without any.
        worst: The largest deviation of a measured point, as a share of the point.
    """

    name: str
    each: dict[str, float]
    base: float
    worst: float

    def at(self, shuffle: Shuffle) -> float:
        """What the function says for a shuffle."""
        return self.base + sum(each * TERMS[term](shuffle) for term, each in self.each.items())


# What each quantity grows with.
MODELS: dict[str, tuple[str, ...]] = {
    "writes": ("map task",),
    "reads": ("range",),
    "commit": ("partition",),
    "run": ("map task", "partition"),
    "index_bytes": ("range",),
    "manifest_bytes": ("map task", "partition"),
}


def fit(name: str, shuffles: Sequence[Shuffle]) -> Fit:
    """The least squared deviations relative to the points, which span magnitudes.

    Args:
        name: A key of `MODELS`.
        shuffles: More points than terms, not all with the same terms.
    """
    terms = MODELS[name]
    values = np.array([getattr(s, name) for s in shuffles], dtype=float)
    weights = 1 / np.maximum(values, 1)
    rows = [[*(TERMS[term](s) for term in terms), 1] for s in shuffles]
    matrix = np.array(rows, dtype=float)
    found, *_ = np.linalg.lstsq(matrix * weights[:, None], values * weights, rcond=None)
    worst = float((np.abs(matrix @ found - values) * weights).max())
    return Fit(name, dict(zip(terms, map(float, found[:-1]), strict=True)), float(found[-1]), worst)
