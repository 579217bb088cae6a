-- the three dearest orders of each country
SELECT country, id, total, place FROM (
  SELECT c.country, o.id, o.total, row_number() OVER (PARTITION BY c.country ORDER BY o.total DESC NULLS LAST, o.id) AS place
  FROM orders o JOIN customers c ON o.customer = c.id
) WHERE place <= 3 ORDER BY country NULLS LAST, place
