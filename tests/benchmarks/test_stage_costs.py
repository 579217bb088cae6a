"""Fits of what stages cost."""

from __future__ import annotations

import pytest

from benchmarks.stage_costs.fit import MODELS, fit
from benchmarks.stage_costs.measure import Shuffle


def _shuffle(tasks: int, partitions: int, noise: int = 0) -> Shuffle:
    ranges = tasks * partitions
    return Shuffle(
        tasks=tasks,
        partitions=partitions,
        ranges=ranges,
        writes=tasks,
        reads=ranges,
        commit=6 + 2 * partitions,
        run=40,
        index_bytes=1000 + 36 * ranges + noise,
        manifest_bytes=800 + 300 * tasks,
    )


POINTS = [_shuffle(tasks, partitions) for tasks in (4, 8, 16) for partitions in (2, 8)]


@pytest.mark.parametrize(("name", "each", "base"), [
    ("writes", 1, 0), ("reads", 1, 0), ("commit", 2, 6), ("index_bytes", 36, 1000), ("manifest_bytes", 300, 800),
])  # fmt: skip
def test_points_on_a_line_give_that_line(name: str, each: float, base: float) -> None:
    (model,) = [m for m in MODELS if m.name == name]
    found = fit(model, POINTS)
    assert (found.each, found.base) == (pytest.approx(each), pytest.approx(base, abs=1e-6))
    assert found.worst == pytest.approx(0, abs=1e-9)
    assert found.at(_shuffle(100, 50)) == pytest.approx(getattr(_shuffle(100, 50), name))


def test_a_point_beside_the_line_shows_as_a_deviation() -> None:
    (model,) = [m for m in MODELS if m.name == "index_bytes"]
    assert fit(model, [*POINTS, _shuffle(16, 8, noise=2000)]).worst > 0.05
