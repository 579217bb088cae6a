-- UNPIVOT and an aggregate of its rows
SELECT q, count(*) AS n, sum(v) AS s FROM wide UNPIVOT (v FOR q IN (q1, q2, q3)) GROUP BY q
