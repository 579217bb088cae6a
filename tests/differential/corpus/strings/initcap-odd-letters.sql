-- initcap of odd letters runs again on Spark
-- on: some
SELECT id, initcap(s) AS a FROM e
