-- the minimum of both zeros runs again on Spark, which keeps one of them
SELECT min(abs(z)) AS a FROM VALUES (0.0D), (-0.0D), (NULL) AS q(z)
