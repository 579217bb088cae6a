"""Fewer rounds of tasks where each repeats much: by the sizes of inputs, within a bound."""

from __future__ import annotations

import pytest

from stagecoach.infra.formats.units import ScanUnit
from stagecoach.infra.runtime.adaptive.estimator import InputSizes
from stagecoach.infra.runtime.adaptive.rounds import MOST_TARGETS, worth_task_bytes
from stagecoach.planner.plan.stages import Branch, Stage
from tests.infra.runtime.test_estimator import MB, make_stage, scan, shuffle

TARGET = 1024 * MB


def a_stage(branches: tuple[Branch, ...]) -> Stage:
    """A large input and one that every task reads."""
    return make_stage([scan(), shuffle()], branches)


SCAN = a_stage((Branch("splits", (0,)),))


def sizes(large: int, shared: int) -> InputSizes:
    return InputSizes({0: [ScanUnit("t", ((100, large),))]}, {1: [shared]})


def worth(stage: Stage, large: int, shared: int, parallelism: int = 2) -> tuple[int, str | None]:
    size, decision = worth_task_bytes(
        stage, sizes(large, shared), parallelism=parallelism, target=TARGET, minimum=4 * MB
    )
    return size, None if decision is None else decision.text


def test_a_task_is_larger_where_it_joins_much() -> None:
    size, told = worth(SCAN, 2200 * MB, 9 * MB)
    assert size == 1800 * MB
    assert told == "2 tasks instead of 4: each reads all 9,437,184 bytes of other inputs"


@pytest.mark.parametrize(
    ("large", "shared", "parallelism"),
    [
        (2200 * MB, 0, 2),  # nothing is repeated
        (2200 * MB, 5 * MB, 2),  # it is too little
        (2000 * MB, 500 * MB, 2),  # there is one round anyway
        (2 * MB, 2 * MB, 2),  # one task is all that the input is worth
        (2200 * MB, 9 * MB, 100),
    ],
)
def test_else_tasks_are_as_settings_say(large: int, shared: int, parallelism: int) -> None:
    assert worth(SCAN, large, shared, parallelism) == (TARGET, None)


def test_a_task_grows_within_a_bound() -> None:
    size, told = worth(SCAN, 100 * TARGET, 10 * TARGET)
    assert size == MOST_TARGETS * TARGET
    assert told is not None
    assert told.startswith("26 tasks instead of 100: ")


def test_partitions_are_not_scanned() -> None:
    leaves = Branch("partitions", (0,))
    assert worth(a_stage((leaves,)), 2200 * MB, 9 * MB) == (TARGET, None)
    assert worth(a_stage(()), 2200 * MB, 9 * MB) == (TARGET, None)
