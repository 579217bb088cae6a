-- ROLLUP of an expression that is read in another order of its operands
SELECT id + a AS x, grouping(id + a) AS g, count(*) FROM t GROUP BY ROLLUP(a + id)
