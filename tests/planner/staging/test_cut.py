"""Stages of a plan whose fragments read one exchange in several places."""

from __future__ import annotations

import pytest

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Column
from stagecoach.planner.plan.physical import StageInputExec, UnionExec
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.staging.cut import branches_of
from stagecoach.planner.types import BIGINT
from tests.planner.catalogs import table

CATALOG = MappingCatalog([table("t", "k bigint; a bigint; b bigint", 2_000_000_000)])
COUNT, MOST = "SELECT k, count(*) AS n FROM t GROUP BY k", "SELECT k, max(a) FROM t GROUP BY k"


@pytest.mark.parametrize("options", [{}, {"force_distribution": True, "broadcast_bytes": 0}])
@pytest.mark.parametrize(
    "sql",
    [
        f"{COUNT} UNION ALL {MOST}",
        f"{COUNT} UNION ALL {MOST} UNION ALL {COUNT}",
        f"SELECT n, count(*) AS m FROM ({COUNT} UNION ALL {MOST}) GROUP BY n",
        "SELECT x.k, y.b FROM t x JOIN t y ON x.k = y.k AND x.a < y.b",
        "SELECT x.k FROM t x LEFT ANTI JOIN t y ON x.k = y.k AND x.a < y.b",
        f"SELECT * FROM ({COUNT}) x JOIN ({MOST}) y ON x.k = y.k",
        "SELECT k, max(a) OVER (PARTITION BY k) FROM t UNION ALL "
        "SELECT k, min(a) OVER (PARTITION BY k) FROM t",
    ],
)
def test_each_place_that_tasks_share_out_is_a_leaf_of_its_own(
    sql: str, options: dict[str, object]
) -> None:
    graph = plan_query(sql, CATALOG, PlannerOptions().updated(options))
    assert graph.fallback_reason is None
    for stage in graph.stages:
        shared_out = [stage.leaves[n] for branch in stage.branches for n in branch.leaves]
        assert len(set(shared_out)) == len(shared_out)
        assert len(stage.operator_rows) == len(stage.operator_sizes)
    reads = [leaf for stage in graph.stages for leaf in stage.leaves]
    assert any(leaf.children == () for leaf in reads)
    assert load_graph(dump_graph(graph)) == graph


def test_one_leaf_in_two_places_is_refused() -> None:
    leaf = StageInputExec(0, "shuffle", (Column(0, "k", BIGINT),))
    with pytest.raises(InternalPlanError, match="the same leaf"):
        branches_of(UnionExec((leaf, leaf), (Column(1, "k", BIGINT),)))
