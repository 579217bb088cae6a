-- an order below a join and a count
SELECT y.s, count(*) AS n, sum(q.v) AS s FROM (SELECT k, v FROM x ORDER BY v DESC) q JOIN y ON q.k = y.k GROUP BY y.s
