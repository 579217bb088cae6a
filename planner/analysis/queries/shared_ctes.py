"""Decide which CTEs of a query are planned and computed once.

A CTE is normally copied to each place that names it, so that filters can move into each copy and
its joins can be reordered with the joins around it. In a chain of CTEs that each name the previous
one twice, the number of copies doubles at every step. This module counts them before planning.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from stagecoach.planner.syntax.parsed_query import cte_number, full_name

MAX_RELATIONS = 100  # of a query with all CTEs put in; up to here each place has its own copy
MAX_COPY = 8  # relations of a CTE that is copied in a query of more

_Visible = Mapping[str, exp.CTE]


def shared_ctes(query: exp.Expr) -> frozenset[int]:
    """The CTEs of a query that are shared, by number.

    A query that reads at most `MAX_RELATIONS` relations shares none. In a larger one a CTE is
    shared if it is named more than once and reads more than `MAX_COPY` relations; what is shared
    below it counts as one.
    """
    copied = _Counter({})
    if copied.relations(query, {}) <= MAX_RELATIONS:
        return frozenset()
    counter = _Counter(copied.named)
    counter.relations(query, {})
    return frozenset(counter.shared)


class _Counter:
    """Counts relations; each CTE is looked at once, however often it is named.

    Args:
        places: How often each CTE is named, by its number; one that is missing is not shared.
    """

    def __init__(self, places: Mapping[int, int]) -> None:
        self.named: dict[int, int] = {}
        self.shared: set[int] = set()
        self._places = places
        self._sizes: dict[int, int] = {}

    def relations(self, tree: exp.Expr, visible: _Visible) -> int:
        """How many relations a query, or a part of one, reads with all CTEs put in."""
        total = 0
        stack: list[tuple[exp.Expr, _Visible]] = [(tree, visible)]
        while stack:
            node, around = stack.pop()
            if isinstance(node, exp.CTE):
                continue  # its relations count where it is named
            clause = node.args.get("with_")
            if isinstance(clause, exp.With):
                for cte in clause.expressions:
                    self._define(cte, around)
                    around = {**around, cte.alias.lower(): cte}
            if isinstance(node, exp.Table):
                named = around.get(full_name(node).lower())
                total += 1 if named is None else self._name(named)
            stack.extend((child, around) for child in node.iter_expressions())
        return total

    def _define(self, cte: exp.CTE, around: _Visible) -> None:
        size = max(self.relations(cte.this, around), 1)
        if size > MAX_COPY and self._places.get(cte_number(cte), 0) > 1:
            self.shared.add(cte_number(cte))
            size = 1
        self._sizes[cte_number(cte)] = size

    def _name(self, cte: exp.CTE) -> int:
        """What a place that names a CTE adds."""
        self.named[cte_number(cte)] = self.named.get(cte_number(cte), 0) + 1
        return self._sizes[cte_number(cte)]
