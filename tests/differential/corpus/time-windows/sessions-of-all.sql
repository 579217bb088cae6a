-- sessions without another key, and their time
SELECT window_time(w) AS t, w.start, n FROM (
  SELECT session_window(moment, '5 seconds') AS w, count(*) AS n FROM events GROUP BY 1)
