-- from_json on DuckDB reads what has the types of the schema
SELECT id, from_json(concat('{"a":', id, ',"b":{"c":[', id / 2, ',null]}}'), 'a INT, b STRUCT<c: ARRAY<DOUBLE>>') AS v FROM jt
