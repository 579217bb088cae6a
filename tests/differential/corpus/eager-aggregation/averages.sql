-- averages of whole numbers and decimals keep their types
SELECT y.kb, avg(x.v) AS a, avg(x.kl) AS b, avg(x.w) AS c, avg(x.kc) AS d, avg(x.v) FILTER (WHERE x.v > 0) AS e FROM x JOIN y ON x.ks = y.ks GROUP BY y.kb
