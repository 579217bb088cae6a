-- sessions: a gap of 30 minutes begins a new one
WITH gaps AS (
  SELECT *, CASE WHEN moment - lag(moment) OVER (PARTITION BY person ORDER BY moment, id) <= INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts
  FROM events
), numbered AS (
  SELECT *, sum(starts) OVER (PARTITION BY person ORDER BY moment, id) AS session FROM gaps
)
SELECT person, session, min(moment) AS first, max(moment) AS last, count(*) AS events, count_if(kind = 'buy') AS buys
FROM numbered GROUP BY person, session
