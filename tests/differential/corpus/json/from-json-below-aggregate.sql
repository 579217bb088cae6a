-- from_json of decimals is a stage of Spark, the aggregate above is not
-- on: some
SELECT v.a AS a, count(*) AS n FROM (SELECT from_json(js, 'a DECIMAL(10,2)') AS v FROM jt) GROUP BY v.a
