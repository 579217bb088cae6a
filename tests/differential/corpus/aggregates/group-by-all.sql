-- GROUP BY ALL
SELECT g, h + 1 AS h1, count(*) AS n, sum(ti) AS s FROM g GROUP BY ALL
