-- from_utc_timestamp, to_utc_timestamp and convert_timezone
SELECT id, from_utc_timestamp(ts, 'America/New_York') AS a, to_utc_timestamp(ts, 'Asia/Kolkata') AS b, convert_timezone('Europe/Berlin', 'UTC', tn) AS c FROM e WHERE year(ts) > 1970
