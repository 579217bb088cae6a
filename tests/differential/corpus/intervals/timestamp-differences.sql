-- a difference of timestamps is an interval of days and time
SELECT id, ts - tu AS a, extract(HOUR FROM ts - tu) AS b, ts - tn AS c FROM e
