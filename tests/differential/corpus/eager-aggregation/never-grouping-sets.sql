-- grouping sets see copies of the joined rows
SELECT y.s, y.kb, sum(x.w) AS s, count(*) AS n FROM x JOIN y ON x.k = y.k GROUP BY ROLLUP(y.s, y.kb)
