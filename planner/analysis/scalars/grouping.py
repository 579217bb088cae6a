"""Build `grouping(key)` and `grouping_id(keys…)`.

Their value comes from the aggregate below (`analysis.queries.grouping_sets`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar, builds
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.expressions import Call, Expression
from stagecoach.planner.types import BIGINT, TINYINT

if TYPE_CHECKING:
    from sqlglot import exp


@builds("grouping", "grouping_id")
def _grouping(node: exp.Anonymous, names: Names) -> Expression:
    name = node.name.lower()
    args = tuple(build_scalar(a, names) for a in node.expressions)
    if name == "grouping" and len(args) != 1:
        raise AnalysisError(f"function 'grouping' takes 1 argument, not {len(args)}")
    return Call(TINYINT if name == "grouping" else BIGINT, name, args)
