-- A sum that leaves its type on the way is none, though it comes back
-- on: some
SELECT b, try_sum(a) AS s FROM VALUES (9223372036854775807, 1), (1, 1), (-1, 1), (-1, 2), (NULL, 3) AS t(a, b) GROUP BY b
