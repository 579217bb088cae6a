-- json_tuple runs on Spark: DuckDB has no such generator
-- on: some
SELECT id, a, b FROM jt LATERAL VIEW json_tuple(js, 'a', 'b') q AS a, b
