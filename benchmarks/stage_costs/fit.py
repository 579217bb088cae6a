"""Least-squares fits of what was measured by the terms of `docs/scale.md`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.stage_costs.measure import Shuffle


@dataclass(frozen=True)
class Model:
    """A quantity as a linear function of one term.

    Args:
        name: The field of `Shuffle`.
        term: What it grows with, in words.
        of: The term of a shuffle.
    """

    name: str
    term: str
    of: Callable[[Shuffle], int]


MODELS = (
    Model("writes", "map task", lambda s: s.tasks),
    Model("reads", "range", lambda s: s.ranges),
    Model("commit", "reading task", lambda s: s.partitions),
    Model("index_bytes", "range", lambda s: s.ranges),
    Model("manifest_bytes", "map task", lambda s: s.tasks),
)


@dataclass(frozen=True)
class Fit:
    """A fitted line.

    Args:
        model: Of which quantity.
        each: How much one more of the term adds.
        base: What is left without any.
        worst: The largest deviation of a measured point, as a share of the point.
    """

    model: Model
    each: float
    base: float
    worst: float

    def at(self, shuffle: Shuffle) -> float:
        """What the line says for a shuffle."""
        return self.base + self.each * self.model.of(shuffle)


def fit(model: Model, shuffles: Sequence[Shuffle]) -> Fit:
    """The line with the least squared deviations relative to the points, as they span magnitudes.

    Args:
        model: What to fit.
        shuffles: At least two points with different terms.
    """
    terms = np.array([model.of(s) for s in shuffles], dtype=float)
    values = np.array([getattr(s, model.name) for s in shuffles], dtype=float)
    weights = 1 / np.maximum(values, 1)
    matrix = np.stack([terms, np.ones_like(terms)], axis=1) * weights[:, None]
    (each, base), *_ = np.linalg.lstsq(matrix, values * weights, rcond=None)
    deviations = np.abs(base + each * terms - values) * weights
    return Fit(model, float(each), float(base), float(deviations.max()))
