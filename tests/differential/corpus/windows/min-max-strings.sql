-- minimum and maximum of strings and dates in a moving frame
SELECT id, min(s) OVER (ORDER BY id ROWS 2 PRECEDING) AS a, max(kt) OVER (PARTITION BY kb ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS b FROM x
