-- projections between the aggregate and the join
SELECT q.t, sum(q.p) AS s, avg(q.p) AS a FROM (SELECT x.w * 2 AS p, y.s AS t FROM x JOIN y ON x.k = y.k) q GROUP BY q.t
