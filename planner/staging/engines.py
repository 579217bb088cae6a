"""Choose the engine of a fragment, and say why."""

from __future__ import annotations

from stagecoach.planner.engines.protocol import Conditions
from stagecoach.planner.engines.registry import AUTO, SPARK, planner_engine, task_engines
from stagecoach.planner.plan.physical import PhysicalPlan

PROVEN = "every expression is proven equal to Spark's"


def choose_engine(
    fragment: PhysicalPlan, conditions: Conditions, choice: str = AUTO
) -> tuple[str, str]:
    """The engine of a fragment and the reason, in words for `explain`.

    The first task engine that may run the fragment does; Spark does if none may.

    Args:
        fragment: What is to run.
        conditions: What decides besides it.
        choice: The option `planner.engine`: a name leaves that engine and Spark.
    """
    if choice == SPARK:
        return SPARK, f"asked for by --engine {SPARK}"
    refusals: dict[str, str] = {}
    for name in task_engines() if choice == AUTO else (choice,):
        engine = planner_engine(name)
        reason = engine.refusal(fragment, conditions)
        if reason is None:
            return name, PROVEN
        refusals[engine.label] = reason
    if len(refusals) == 1:
        return SPARK, next(iter(refusals.values()))
    return SPARK, "; ".join(f"{label}: {reason}" for label, reason in refusals.items())
