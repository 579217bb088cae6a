-- sessions of many rows of one time, by odd keys
SELECT gd, gt, unix_micros(session_window.start) AS s, unix_micros(session_window.end) AS x, count(*) AS n
FROM g GROUP BY gd, gt, session_window(ts, '2 hours')
