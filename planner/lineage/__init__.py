"""Trace where the columns of a stage and of a result come from.

Lineage is computed from stages alone, so a compiled plan is enough. For each column it holds the
columns that its values are made of and, separately, those that only decide which rows exist or in
which order.

    lineitem.l_extendedprice ─▶ [stage 0] c1 ─▶ [stage 1] sum(c1) ─▶ result.revenue
    lineitem.l_shipdate ┄┄(filter)┄┄▶ rows of stage 0 ┄┄▶ rows of the result
"""

from __future__ import annotations

from stagecoach.planner.lineage.graph import graph_lineage as graph_lineage
from stagecoach.planner.lineage.graph import stage_lineage as stage_lineage
from stagecoach.planner.lineage.model import ColumnLineage as ColumnLineage
from stagecoach.planner.lineage.model import Decider as Decider
from stagecoach.planner.lineage.model import Lineage as Lineage
from stagecoach.planner.lineage.model import QueryLineage as QueryLineage
from stagecoach.planner.lineage.model import Role as Role
from stagecoach.planner.lineage.model import Source as Source
from stagecoach.planner.lineage.model import StageColumn as StageColumn
from stagecoach.planner.lineage.model import TableColumn as TableColumn
