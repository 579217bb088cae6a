-- EXCEPT drops duplicates
SELECT a, c FROM t EXCEPT SELECT a, c FROM u
