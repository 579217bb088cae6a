"""Turn subqueries and lateral joins into plain joins; the parts of the rule `unnest_subqueries`.

The method is that of Neumann and Kemper, "Unnesting arbitrary queries" (BTW 2015):

    pull_up     the cheap way: correlated conjuncts move up into the join with the outer query
    domain      D, the distinct values of the outer columns that a subquery reads
    push_down   the general way: D moves down through every operator, and is left out where
                equalities with the subquery's own columns bind all of it
    one_row     subqueries of exactly one row: aggregates without groups, SELECT without FROM
    values      scalar subqueries, EXISTS and IN as values: columns joined to the outer query
    lateral     joins whose right side reads columns of the left one
"""

from __future__ import annotations
