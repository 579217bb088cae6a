-- AGGREGATE of an AGGREGATE
FROM sales |> AGGREGATE sum(units) AS s GROUP BY year, region |> AGGREGATE max(s) AS m GROUP BY year
