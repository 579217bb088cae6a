"""When an estimate of rows is far off."""

from collections.abc import Mapping

from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.tree import walk

FAR_OFF = 10.0


def is_far_off(planned: int, found: int) -> bool:
    """Whether a table has so many more or fewer rows than a plan was made for."""
    low, high = sorted((max(planned, 1), max(found, 1)))
    return high >= FAR_OFF * low


def planned_rows(stage: Stage) -> Mapping[str, int]:
    """Rows of the base tables that the plan of a stage was made for."""
    if not stage.operator_rows:
        return {}
    pairs = zip(walk(stage.fragment), stage.operator_rows, strict=False)
    return {node.table: rows for node, rows in pairs if isinstance(node, ScanExec)}
