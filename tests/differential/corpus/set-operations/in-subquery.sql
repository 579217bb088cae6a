-- a set operation in IN
SELECT id FROM t WHERE a IN (SELECT a FROM u EXCEPT SELECT 2)
