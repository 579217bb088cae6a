-- an expression over several aggregates
SELECT h, sum(ti) * 100.0 / count(*) AS a, max(bigint(i)) - min(i) AS b, coalesce(sum(never), 0) AS c FROM g GROUP BY h
