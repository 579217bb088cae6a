-- FILTER on several aggregates
SELECT h, count(*) FILTER (WHERE b) AS a, sum(ti) FILTER (WHERE g = 'a') AS b, max(s) FILTER (WHERE i IS NULL) AS c FROM g GROUP BY h
