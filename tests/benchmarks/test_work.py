"""The constants of work are fitted to what was measured."""

from __future__ import annotations

import random

import pytest

from benchmarks.work import Point, deviation, estimate, fit

KNOWN = {"row": 10e-9, "byte": 1e-9, "group": 50e-9}
TRUE = {"row": 4e-9, "byte": 0.6e-9, "group": 20e-9}


def points(seed: int = 0, spread: float = 0.0) -> list[Point]:
    rng = random.Random(seed)
    found = []
    for number in range(40):
        units = {name: 10 ** rng.uniform(6, 9) * (rng.random() < 0.7) for name in KNOWN}
        units["row"] += 1e6  # each does something
        point = Point(f"q{number}", 1.0, units)
        found.append(
            Point(point.query, estimate(point, TRUE) * rng.lognormvariate(0, spread), units)
        )
    return found


def test_constants_are_found_again() -> None:
    measured = points()
    fitted = fit(measured, KNOWN)
    assert fitted == pytest.approx(TRUE, rel=0.05)
    assert deviation(measured, fitted) < 0.02 < deviation(measured, KNOWN)


def test_what_varies_stays_positive_and_is_right_on_the_whole() -> None:
    measured = points(1, 0.3)
    fitted = fit(measured, KNOWN)
    assert all(seconds > 0 for seconds in fitted.values())
    assert fitted == pytest.approx(TRUE, rel=0.5)
    ratios = [estimate(point, fitted) / point.seconds for point in measured]
    assert 0.9 < sum(ratios) / len(ratios) < 1.2


def test_what_nothing_was_measured_of_follows_the_others() -> None:
    measured = [Point(p.query, p.seconds, {**p.units, "sort": 0.0}) for p in points()]
    fitted = fit(measured, {**KNOWN, "sort": 100e-9})
    assert 30e-9 < fitted["sort"] < 70e-9  # they are half as large as they were believed to be
