-- flatten, slice, reverse and concat of arrays
SELECT id, flatten(aa) AS a, slice(ai, 2, 2) AS b, reverse(sa) AS c, concat(ai, bi) AS d FROM n
