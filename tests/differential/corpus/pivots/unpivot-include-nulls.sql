-- UNPIVOT that includes NULLs
SELECT id, q, v FROM wide UNPIVOT INCLUDE NULLS (v FOR q IN (q1, q2, q3))
