-- GROUPS frames are an error, as in Spark
SELECT id, sum(v) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM x
