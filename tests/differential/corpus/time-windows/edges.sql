-- windows of odd times: before 1970, dates, local times, far years
SELECT unix_micros(w.start) AS s, unix_micros(w.end) AS x, n FROM (
  SELECT window(dt, '7 days', '3 days', '-1 hour') AS w, count(*) AS n FROM e GROUP BY 1
  UNION ALL SELECT window(ts, '1000001 microseconds') AS w, count(*) AS n FROM e GROUP BY 1)
