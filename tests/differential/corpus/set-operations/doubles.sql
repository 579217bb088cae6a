-- NaN and -0.0 in set operations
SELECT d FROM t INTERSECT SELECT d FROM u
