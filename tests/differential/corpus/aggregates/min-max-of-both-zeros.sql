-- the minimum of both zeros is the first of them
SELECT min(z) AS a, max(z) AS b FROM VALUES (0.0D), (-0.0D), (NULL) AS q(z)
