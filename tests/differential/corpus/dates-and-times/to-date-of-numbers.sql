-- numbers are read as texts by to_date, as seconds by to_timestamp
SELECT id, try_to_date(k) AS a, to_date(20240228 + k % 2, 'yyyyMMdd') AS b, to_timestamp(k) AS c, try_to_timestamp(b) AS f, try_to_date(1900 + ti) AS g FROM e WHERE k BETWEEN 0 AND 100
