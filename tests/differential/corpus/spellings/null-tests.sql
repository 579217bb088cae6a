-- isnull and isnotnull as functions
SELECT id, isnull(i) AS a, isnotnull(s) AS b FROM e WHERE NOT isnull(id)
