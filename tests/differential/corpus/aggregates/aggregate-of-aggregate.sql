-- an aggregate over a grouped derived table
SELECT max(n) AS most, avg(s) AS mean FROM (SELECT g, h, count(*) AS n, sum(ti) AS s FROM g GROUP BY g, h)
