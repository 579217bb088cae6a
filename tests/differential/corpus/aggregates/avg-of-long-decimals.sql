-- averages with more digits than a quotient keeps
SELECT a, avg(CAST(v AS DECIMAL(38,18)) / 7) AS x, avg(CAST(-v AS DECIMAL(38,0))) AS y,
  avg(CAST(-v AS DECIMAL(28,2)) / 3) AS z, avg(CAST(v AS DECIMAL(20,10)) / 3) AS w
FROM t GROUP BY a
