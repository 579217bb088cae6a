-- the clock is one moment in a query
SELECT current_date() >= DATE'2020-01-01' AS a, now() = current_timestamp() AS b, current_date = curdate() AS c, localtimestamp() > TIMESTAMP_NTZ'2020-01-01 00:00:00' AS d FROM x
