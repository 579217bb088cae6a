-- date_format with several patterns
SELECT id, date_format(ts, 'yyyy-MM-dd HH:mm') AS a, date_format(dt, 'EEE d MMM') AS b FROM e WHERE year(ts) > 1900
