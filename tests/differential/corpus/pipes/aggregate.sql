-- AGGREGATE with GROUP BY puts the keys first
FROM sales |> AGGREGATE sum(amount) AS s, count(*) AS n GROUP BY year, region
