-- seconds, milliseconds and microseconds since 1970
SELECT id, unix_seconds(ts) AS a, unix_millis(ts) AS b, unix_micros(ts) AS c, timestamp_seconds(k) AS d, unix_date(dt) AS f FROM e
