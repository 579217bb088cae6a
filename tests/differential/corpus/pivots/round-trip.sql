-- UNPIVOT and PIVOT again
SELECT * FROM (SELECT id, q, v FROM wide UNPIVOT (v FOR q IN (q1, q2, q3))) PIVOT (max(v) FOR q IN ('q1', 'q2', 'q3'))
