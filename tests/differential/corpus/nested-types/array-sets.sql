-- distinct, union, intersect and except of arrays
SELECT id, array_distinct(ai) AS a, array_union(ai, bi) AS b, array_intersect(sa, sb) AS c, array_except(ad, bd) AS d FROM n
