-- an interval cast to an int
SELECT id, CAST(dt - du AS INT) AS a, CAST(n AS INTERVAL DAY) AS b FROM e
