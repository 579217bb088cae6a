-- ORDER BY ordinals and aliases
SELECT k AS key, sum(v) AS total FROM x GROUP BY k ORDER BY total DESC NULLS LAST, 1
