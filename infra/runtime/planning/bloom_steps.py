"""What the tasks of a stage do with a Bloom filter: build one, or apply one."""

from __future__ import annotations

from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.worker.bloom import BloomStep
from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.physical import (
    BloomBuildExec,
    BloomProbeExec,
    PhysicalPlan,
    StageInputExec,
)
from stagecoach.planner.plan.stages import Stage


def bloom_step(stage: Stage) -> BloomStep | None:
    """The step that each task of a stage takes after its fragment; None for most stages."""
    root = stage.fragment
    if isinstance(root, BloomBuildExec):
        return BloomStep(
            kind="build" if root.keys else "merge",
            num_words=root.num_words,
            keys=_positions(root.child, root),
            types=tuple(column.dtype for column in root.child.columns),
        )
    if isinstance(root, BloomProbeExec):
        places = (i for i, leaf in enumerate(stage.leaves) if leaf is root.right)
        return BloomStep(
            kind="probe",
            num_words=root.num_words,
            keys=_positions(root.left, root),
            source=next(places),
        )
    return None


def not_applied(stage: Stage) -> list[Decision]:
    """What to say of a filter where Spark runs the stage; nothing for a stage without one."""
    root = stage.fragment
    if not isinstance(root, BloomProbeExec) or not isinstance(root.right, StageInputExec):
        return []
    text = f"the Bloom filter of stage {root.right.stage_id} is not applied: Spark runs this stage"
    return [Decision("bloom", text)]


def _positions(plan: PhysicalPlan, root: BloomBuildExec | BloomProbeExec) -> tuple[int, ...]:
    places = {column.id: i for i, column in enumerate(plan.columns)}
    return tuple(places[key.id] for key in root.keys if isinstance(key, ColumnRef))
