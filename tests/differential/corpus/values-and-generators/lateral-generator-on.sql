-- a LATERAL generator in a left join on a condition
SELECT id, e.x FROM tree LEFT JOIN LATERAL explode(xs) AS e(x) ON e.x > 1
