-- rows that are there more than once
SELECT a, b, c, v, count(*) AS times, min(id) AS kept FROM t GROUP BY a, b, c, v HAVING count(*) > 1
