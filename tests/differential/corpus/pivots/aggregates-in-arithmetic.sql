-- PIVOT of arithmetic on aggregates
SELECT * FROM (SELECT country, tier, id FROM customers)
PIVOT (sum(id) * 2 AS n, max(id) + count(*), count(id) + 1 FOR tier IN ('gold' AS g, 'silver' s))
