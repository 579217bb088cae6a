-- aggregate with a finish
SELECT id, aggregate(al, 0L, (acc, x) -> acc + coalesce(x, 0), acc -> acc * 2) AS a FROM n
