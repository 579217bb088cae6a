-- GROUP BY an expression that is read in another order of its operands
SELECT 1 + a AS x, a * 2 * id AS y, a > 1 AS z, NOT (a > id) AS w, sum(v) FROM t
GROUP BY a + 1, id * (2 * a), 1 < a, a <= id HAVING (1 + a) IS NOT NULL ORDER BY 1 + a, id * 2 * a
