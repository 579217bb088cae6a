-- the common type of an int, a bigint and a decimal
SELECT a AS n FROM t UNION ALL SELECT v FROM u UNION ALL SELECT c FROM u
