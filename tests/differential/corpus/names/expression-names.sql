-- the names of expressions without alias
SELECT v + 1, -v, abs(v), v IS NULL, CAST(v AS STRING), CASE WHEN v > 0 THEN 1 ELSE 0 END, v BETWEEN 1 AND 2, ks LIKE 'a%' FROM x
