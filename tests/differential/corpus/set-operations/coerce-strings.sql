-- a string and an int become what Spark says
SELECT a AS v FROM t UNION ALL SELECT '7'
