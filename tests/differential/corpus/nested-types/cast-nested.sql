-- casts of arrays and structs to other element types
SELECT id, CAST(ai AS ARRAY<BIGINT>) AS a, CAST(st AS STRUCT<a: BIGINT, b: STRING, c: STRING>) AS b, CAST(al AS ARRAY<STRING>) AS c FROM n
