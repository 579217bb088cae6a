-- grouping by a function of a string
SELECT substring(s, 1, 1) AS c, count(*) AS n, min(length(s)) AS m FROM e GROUP BY substring(s, 1, 1)
