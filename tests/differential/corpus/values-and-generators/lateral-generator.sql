-- a LATERAL generator in a join
-- on: spark
SELECT id, e.x FROM tree LEFT JOIN LATERAL explode(xs) AS e(x) ON e.x > 1
