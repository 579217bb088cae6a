"""Where the columns of a stage and of a result come from.

In: stages, or a whole graph; nothing else is read, so a compiled plan will do. Out: `Lineage`: for
each column those whose values it is made of and, told apart, those that only decide which rows
there are, or in which order.

    lineitem.l_extendedprice ─▶ [stage 0] c1 ─▶ [stage 1] sum(c1) ─▶ result.revenue
    lineitem.l_shipdate ┄┄(filter)┄┄▶ rows of stage 0 ┄┄▶ rows of the result
"""

from __future__ import annotations

from planner.lineage.graph import graph_lineage as graph_lineage
from planner.lineage.graph import stage_lineage as stage_lineage
from planner.lineage.model import ColumnLineage as ColumnLineage
from planner.lineage.model import Decider as Decider
from planner.lineage.model import Lineage as Lineage
from planner.lineage.model import QueryLineage as QueryLineage
from planner.lineage.model import Role as Role
from planner.lineage.model import Source as Source
from planner.lineage.model import StageColumn as StageColumn
from planner.lineage.model import TableColumn as TableColumn
