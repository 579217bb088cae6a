-- tinyint and smallint keep their width
SELECT id, ti % 5 AS a, si % ti AS b, k + CAST(1 AS TINYINT) AS c, CAST(2 AS SMALLINT) * CAST(3 AS TINYINT) AS d FROM e WHERE ti <> 0
