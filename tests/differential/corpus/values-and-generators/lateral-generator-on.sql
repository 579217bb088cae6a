-- a LATERAL generator in a left join on a condition runs on Spark
-- on: spark
SELECT id, e.x FROM tree LEFT JOIN LATERAL explode(xs) AS e(x) ON e.x > 1
