-- an aggregate of a column that is also a key
SELECT a, b, sum(a) AS s, max(b) AS m FROM t GROUP BY CUBE (a, b)
