-- PIVOT with a text among its aggregates counts 0 where there is no row
SELECT * FROM (SELECT country, tier, id, name FROM customers)
PIVOT (count(id), max(name), count(*) || '' AS t, coalesce(max(name), 'none') FOR tier IN ('gold', 'silver', NULL))
