-- json_tuple of computed names is a stage of Spark
-- on: some
SELECT id, p, q FROM jt LATERAL VIEW json_tuple(js, concat('', 'a'), 'a.b') t AS p, q
