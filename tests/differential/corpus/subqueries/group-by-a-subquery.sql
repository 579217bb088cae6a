-- grouping by a correlated subquery of a derived table
SELECT n, count(*) AS rows FROM (SELECT (SELECT count(*) FROM y WHERE y.k = x.k) AS n FROM x) GROUP BY n
