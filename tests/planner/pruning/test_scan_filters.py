"""What a fragment asks of the rows of a scan."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.plan.expressions import Column, Expression, Literal, call
from stagecoach.planner.plan.physical import FilterExec, PhysicalPlan, ScanExec, UnionExec
from stagecoach.planner.pruning.scan_filters import conjuncts_above
from stagecoach.planner.types import BOOLEAN, INT

X = Column(0, "x", INT)
SCAN = ScanExec("t", (X,), ("x",))


def above(low: int) -> Expression:
    return call("gt", BOOLEAN, X.ref, Literal(INT, low))


def union(*inputs: PhysicalPlan) -> UnionExec:
    return UnionExec(inputs, (X,))


def test_filters_right_above_the_scan_count_from_the_outermost() -> None:
    fragment = FilterExec(FilterExec(SCAN, call("and", BOOLEAN, above(1), above(2))), above(3))
    assert conjuncts_above(fragment, SCAN) == (above(3), above(1), above(2))
    assert conjuncts_above(union(fragment), SCAN) == (above(3), above(1), above(2))
    assert conjuncts_above(FilterExec(union(SCAN), above(1)), SCAN) == ()
    assert conjuncts_above(SCAN, SCAN) == ()


def test_equal_scans_are_one_that_all_their_readers_need() -> None:
    """A fragment names both by one input, so the filter of one must not rule out rows for both."""
    fragment = union(FilterExec(SCAN, above(1)), FilterExec(replace(SCAN), above(2)))
    assert conjuncts_above(fragment, SCAN) == ()


def test_of_several_readers_none_speaks_for_all() -> None:
    assert conjuncts_above(union(FilterExec(SCAN, above(1)), SCAN), SCAN) == ()


def test_a_filter_that_is_computed_once_speaks_for_all_its_readers() -> None:
    shared = FilterExec(SCAN, above(1))
    assert conjuncts_above(union(shared, shared), SCAN) == (above(1),)
    assert conjuncts_above(union(FilterExec(shared, above(2)), shared), SCAN) == (above(1),)
    assert conjuncts_above(union(shared, FilterExec(replace(shared), above(2))), SCAN) == (
        above(1),
    )
