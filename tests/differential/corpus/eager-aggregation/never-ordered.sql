-- aggregates of other kinds
SELECT y.s, max_by(x.v, x.id) AS m, sum(x.v) AS s FROM x JOIN y ON x.k = y.k GROUP BY y.s
