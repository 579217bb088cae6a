-- branches of unlike width are an error
SELECT a, b FROM t UNION SELECT a FROM u
