-- merged groups are joined again
SELECT q.s, q.n, u.id FROM (SELECT y.s, count(*) AS n FROM x JOIN y ON x.k = y.k GROUP BY y.s) q JOIN x u ON q.s = u.s
