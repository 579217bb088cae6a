"""Fits of what stages cost."""

from __future__ import annotations

import pytest

from benchmarks.stage_costs.fit import fit
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
        run=28 + 3 * tasks + partitions,
        index_bytes=1000 + 36 * ranges + noise,
        manifest_bytes=800 + 300 * tasks + 8 * partitions,
    )


POINTS = [_shuffle(tasks, partitions) for tasks in (4, 8, 16) for partitions in (2, 8)]


@pytest.mark.parametrize(("name", "each", "base"), [
    ("writes", {"map task": 1}, 0),
    ("reads", {"range": 1}, 0),
    ("commit", {"partition": 2}, 6),
    ("run", {"map task": 3, "partition": 1}, 28),
    ("index_bytes", {"range": 36}, 1000),
    ("manifest_bytes", {"map task": 300, "partition": 8}, 800),
])  # fmt: skip
def test_points_on_a_line_give_that_line(name: str, each: dict[str, float], base: float) -> None:
    found = fit(name, POINTS)
    assert found.each == pytest.approx(each)
    assert found.base == pytest.approx(base, abs=1e-6)
    assert found.worst == pytest.approx(0, abs=1e-9)
    assert found.at(_shuffle(100, 50)) == pytest.approx(getattr(_shuffle(100, 50), name))


def test_a_point_beside_the_line_shows_as_a_deviation() -> None:
    assert fit("index_bytes", [*POINTS, _shuffle(16, 8, noise=2000)]).worst > 0.05
