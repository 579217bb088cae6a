-- groups of NULL meet NULL keys
SELECT y.s, count(*) AS n, sum(x.w) AS s FROM x JOIN y ON x.k <=> y.k AND x.kb <=> y.kb GROUP BY y.s
