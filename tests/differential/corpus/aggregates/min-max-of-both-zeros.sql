-- the minimum of both zeros runs again on Spark, which keeps one of them
-- on: some
SELECT min(z) AS a, max(z) AS b FROM VALUES (0.0D), (-0.0D), (NULL) AS q(z)
