-- aggregates without groups over a join of no rows
SELECT count(*) AS n, count(x.v) AS nv, sum(x.v) AS s, avg(x.w) AS a, min(x.s) AS m FROM x JOIN z ON x.k = z.k
