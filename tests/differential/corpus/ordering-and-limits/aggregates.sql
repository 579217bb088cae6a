-- ORDER BY an aggregate that is not selected
SELECT k FROM x GROUP BY k ORDER BY count(*) DESC, k LIMIT 4
