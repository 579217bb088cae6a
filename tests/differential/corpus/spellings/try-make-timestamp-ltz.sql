-- try_make_timestamp_ltz gives NULL for a month 13
SELECT id, try_make_timestamp_ltz(2024, 13, 1, 0, 0, 0) AS a, try_make_timestamp_ltz(2024, 2, 29, 1, 2, 3.5) AS b FROM x
