-- a LATERAL generator in a join
SELECT id, e.x FROM tree LEFT JOIN LATERAL explode(xs) AS e(x) ON true
