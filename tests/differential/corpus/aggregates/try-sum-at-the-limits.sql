-- Sums at the limits of their type, and some beyond
SELECT b, try_sum(a) AS s, try_sum(DISTINCT a) AS d, try_sum(a) FILTER (WHERE a < 0) AS f
FROM VALUES (9223372036854775807, 1), (-9223372036854775807, 1), (-1, 1), (9223372036854775807, 2), (1, 2), (NULL, 3) AS t(a, b) GROUP BY b
