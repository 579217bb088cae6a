-- TRY_CAST of texts that are the limit of a decimal only as doubles
SELECT a, try_cast(a AS DECIMAL(38,36)) AS b, try_cast(a AS DECIMAL(4,2)) AS c, try_cast(a AS DECIMAL(22,20)) AS d
FROM VALUES ('99.99999999999999999999'), ('9.999999999999999999999e1'), ('100'), ('100.05'), ('-99.9999999999999999999999'),
  ('1.0000000000000000000001e2'), ('99.995') AS t(a)
