"""When constants are the same."""

from __future__ import annotations

import math

from stagecoach.planner.plan.expressions import TRUE, Literal
from stagecoach.planner.types import BIGINT, DOUBLE, STRING


def test_zeros_of_both_signs_are_two_constants() -> None:
    assert Literal(DOUBLE, 0.0) != Literal(DOUBLE, -0.0)
    assert len({Literal(DOUBLE, 0.0), Literal(DOUBLE, -0.0), Literal(DOUBLE, 0.0)}) == 2


def test_nan_is_one_constant() -> None:
    assert Literal(DOUBLE, math.nan) == Literal(DOUBLE, float("nan"))


def test_other_constants_are_the_same_by_type_and_value() -> None:
    assert Literal(BIGINT, 1) == Literal(BIGINT, 1)
    assert Literal(BIGINT, 1) != Literal(DOUBLE, 1.0)
    assert Literal(STRING, None) != Literal(BIGINT, None)
    assert TRUE != "true"
