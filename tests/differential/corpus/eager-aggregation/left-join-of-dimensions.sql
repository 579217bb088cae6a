-- aggregates of the kept side of a left join
SELECT y.s, x.kb, count(*) AS n, sum(x.w) AS s, min(x.kt) AS m FROM x LEFT JOIN y ON x.k = y.k AND x.kb GROUP BY y.s, x.kb
