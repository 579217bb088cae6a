-- json_tuple of texts that DuckDB does not read like Spark
SELECT id, a, b, c, d FROM jt LATERAL VIEW json_tuple(js, 'a', 'b') q AS a, b LATERAL VIEW OUTER json_tuple(odd, 'a', 'e') r AS c, d
