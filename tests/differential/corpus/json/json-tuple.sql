-- json_tuple runs on Spark
-- on: some
SELECT id, a, b FROM jt LATERAL VIEW json_tuple(js, 'a', 'b') q AS a, b
