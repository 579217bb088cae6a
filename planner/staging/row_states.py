"""Replace a partial aggregate that would merge nothing by a projection of its rows.

    sum(v), count(v) of the rows of a task by k   ─▶   k, v, CASE WHEN v IS NULL THEN 0 ELSE 1 END

Each row becomes the states of a group of one row, in the columns and types of the partial
aggregate. The final aggregate merges them like any others, so the result is the same. Only the
stage's own output grows, and no hash table has to be built. The registry of aggregates defines the
state of a single row next to each function.
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.engines.protocol import Conditions
from stagecoach.planner.engines.registry import planner_engine
from stagecoach.planner.plan.early_filters import without_early_filter
from stagecoach.planner.plan.operators import NamedExpression
from stagecoach.planner.plan.physical import AggregateExec, ProjectionExec
from stagecoach.planner.plan.stages import Stage

_ALREADY_MET = Conditions({}, exact_math=False)
"""Of what the stage did before, which the engine may run."""


def passed_through(stage: Stage) -> Stage | None:
    """The stage with a row for each input row of its partial aggregate, or None.

    None where it does not end in a partial aggregate with keys, where a state has no form for one
    row, or where the engine of the stage must not compute that form. The plan hash of the result
    means nothing: the stage is the same.
    """
    node = without_early_filter(stage.fragment)
    if not isinstance(node, AggregateExec) or node.mode != "partial" or not node.groups:
        return None
    items: list[NamedExpression] = list(node.groups)
    for column, call in node.aggregates:
        row = AGGREGATES[call.function].row
        if row is None or call.distinct:
            return None
        items.append((column, row(call)))
    rows = ProjectionExec(node.child, tuple(items))
    if planner_engine(stage.engine).refusal(rows, _ALREADY_MET) is not None:
        return None
    return replace(stage, fragment=rows)
