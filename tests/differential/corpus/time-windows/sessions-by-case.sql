-- the gap of a session depends on the row
SELECT person, session_window, count(*) AS n FROM events
GROUP BY person, session_window(moment, CASE WHEN kind = 'view' THEN '5 minutes'
  WHEN kind = 'buy' THEN '-1 minute' WHEN kind IS NULL THEN NULL ELSE '2 days' END)
