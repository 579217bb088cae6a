"""Build sides of wide tasks without rows that have no partner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.planner.analysis.queries import shared_ctes
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import AggregateExec, HashJoinExec, PhysicalPlan
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from tests.planner.catalogs import table

COLUMNS = "id bigint; k bigint; note string"
CATALOG = MappingCatalog(
    [
        replace(
            table(name, COLUMNS, rows, distinct={"id": rows, "k": rows, "note": 1000}),
            by_cores=True,
            is_local=True,
        )
        for name, rows in (("small", 100_000), ("other", 100_000), ("large", 20_000_000))
    ]
)
FEW = "(SELECT s.id, s.k FROM large s JOIN small o ON s.id = o.id WHERE s.note = 'x') t"
ANTI = f"SELECT t.id FROM {FEW} WHERE NOT EXISTS (SELECT 1 FROM large u WHERE u.k = t.k)"


def fragment(sql: str) -> PhysicalPlan:
    graph = plan_query(sql, CATALOG, PlannerOptions())
    assert len(graph.stages) == 1
    return graph.head.fragment


def builds(sql: str) -> list[HashJoinExec]:
    """Semi joins below the right sides of other joins, with the keys of the left side."""
    found = []
    for node in set(walk(fragment(sql))):
        if isinstance(node, HashJoinExec) and isinstance(node.right, HashJoinExec):
            right = node.right
            if right.kind == "semi" and isinstance(right.right, AggregateExec):
                assert right.right.child == node.left
                assert right.left_keys == node.right_keys
                assert right.null_safe == node.null_safe
                found.append(right)
    return found


@pytest.mark.parametrize(
    "sql",
    [
        ANTI,
        ANTI.replace("NOT EXISTS", "EXISTS"),
        ANTI.replace("u.k = t.k", "u.k <=> t.k AND u.id <> t.id"),
        ANTI.replace("u.k = t.k", "u.k = t.k AND u.note = CAST(t.id AS STRING)"),
        f"SELECT t.id, u.note FROM {FEW} LEFT JOIN large u ON u.k = t.k",
    ],
)
def test_a_large_build_side_is_reduced_to_the_keys_of_a_small_one(sql: str) -> None:
    assert len(builds(sql)) == 1


@pytest.mark.parametrize(
    "sql",
    [
        # Nobody knows how many rows have a partner.
        ANTI.replace("u.k = t.k", "u.note = CAST(t.k AS STRING)"),
        # The right side is small as well, or the left one large.
        ANTI.replace("large u", "other u"),
        ANTI.replace(" WHERE s.note = 'x'", ""),
        # The planner builds the small side.
        f"SELECT t.id, u.note FROM {FEW} JOIN large u ON u.k = t.k",
        # The engine may build the left side.
        "SELECT id FROM small t WHERE NOT EXISTS (SELECT 1 FROM large u WHERE u.k = t.k)",
    ],
)
def test_what_gains_nothing_stays_as_it_is(sql: str) -> None:
    assert builds(sql) == []


def test_the_small_side_is_computed_once() -> None:
    graph = plan_query(ANTI, CATALOG, PlannerOptions())
    text = render_fragment(graph.head, "duckdb", {})
    assert text.startswith("WITH part_0 AS MATERIALIZED (")
    assert text.count("part_0") == 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.id, o.k FROM {top} LEFT JOIN large o ON o.k = t.k",
        "SELECT t.id FROM {top} JOIN small o ON o.id = t.id "
        "WHERE NOT EXISTS (SELECT 1 FROM large u WHERE u.k = t.k)",
    ],
)
def test_the_first_of_equal_rows_are_chosen_once(sql: str) -> None:
    """An engine may choose others each time, which would then lack their partners."""
    top = "(SELECT s.id, s.k FROM large s ORDER BY s.note LIMIT 1000) t"
    graph = plan_query(sql.format(top=top), CATALOG, PlannerOptions())
    assert [stage.cores for stage in graph.stages] == [2]
    text = render_fragment(graph.head, "duckdb", {})
    assert text.count("SEMI JOIN") == 1
    assert text.count("LIMIT 1000") == 1


def test_the_first_rows_of_a_shared_subplan_are_chosen_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_ctes, "MAX_RELATIONS", 0)
    monkeypatch.setattr(shared_ctes, "MAX_COPY", 0)
    graph = plan_query(
        "WITH c AS (SELECT k, note, id, count(*) AS n FROM large WHERE note LIKE '%x%' GROUP BY ALL) "
        "SELECT t.id, o.k FROM (SELECT s.id, s.k FROM c s ORDER BY s.note LIMIT 1000) t "
        "LEFT JOIN large o ON o.k = t.k LEFT JOIN c ON c.n = t.k + 1",
        CATALOG,
        PlannerOptions(),
    )
    texts = [render_fragment(stage, "duckdb", {}) for stage in graph.stages]
    assert sum("SEMI JOIN" in text for text in texts) == 1
    assert sum(text.count("LIMIT 1000") for text in texts) == 1


def test_joins_in_a_row_share_the_keys_of_the_first_left_sides() -> None:
    """Else each of them would double the plan."""
    counts = []
    for number in (1, 2, 12):
        where = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM large u{i} WHERE u{i}.k = t.k AND u{i}.id <> {i})"
            for i in range(number)
        )
        plan = fragment(f"SELECT t.id FROM {FEW} WHERE {where}")
        made = {n for n in walk(plan) if isinstance(n, AggregateExec) and not n.aggregates}
        assert len(made) == min(number, 2)
        counts.append(sum(1 for _ in walk(plan)))
    assert counts[2] < 12 * counts[1]


def test_a_computed_key_of_a_reduced_side_is_left_as_it_is() -> None:
    more = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM large v{i} WHERE v{i}.k = t.k + {i})" for i in range(3)
    )
    assert len(builds(f"{ANTI} AND {more}")) == 2
