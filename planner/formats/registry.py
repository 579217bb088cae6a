"""Table formats by name; nothing else in the planner or in `infra` names one.

A format has two halves, one in `stagecoach.planner.formats` and one in `stagecoach.infra.formats`.
Each package has a registry, and only the name joins the two. An entry is the path of the half, such
as `package.module:FORMAT`, which is imported when a table of that format is first met: planning a
query over Parquet files loads no code of any other format.
"""

from __future__ import annotations

from stagecoach.planner.formats.protocol import PlannerFormat
from stagecoach.planner.registry import Registry

PLANNER_FORMATS: Registry[PlannerFormat] = Registry(
    {"deduplicated": "stagecoach.planner.formats.deduplicated.planner_format:FORMAT"}
)
"""The planner's halves; a format of which the planner need know nothing is not listed."""

_DEFAULT = PlannerFormat()


def planner_format(name: str) -> PlannerFormat:
    """Return the planner's half of a format, the default for a format that has none."""
    return PLANNER_FORMATS.get(name) or _DEFAULT
