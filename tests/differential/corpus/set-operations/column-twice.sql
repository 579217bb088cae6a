-- a name of two columns that are one, behind set operations
SELECT a FROM (SELECT a, a FROM t UNION ALL SELECT a, id FROM u) UNION ALL SELECT id FROM (SELECT id, id FROM t EXCEPT SELECT a, id FROM u)
