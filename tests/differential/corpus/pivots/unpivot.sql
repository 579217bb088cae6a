-- UNPIVOT drops NULLs
SELECT * FROM wide UNPIVOT (v FOR q IN (q1, q2 AS second, q3))
