-- CUBE of two columns
SELECT a, b, sum(c) AS s FROM t GROUP BY CUBE (a, b)
