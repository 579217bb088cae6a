-- the distribution of session lengths in seconds
WITH marked AS (
  SELECT person, id, moment, unix_seconds(moment) - lag(unix_seconds(moment)) OVER (PARTITION BY person ORDER BY moment, id) AS gap FROM events
), sessions AS (
  SELECT person, moment, count_if(gap IS NULL OR gap > 1800) OVER (PARTITION BY person ORDER BY moment, id) AS session FROM marked
), lengths AS (
  SELECT unix_seconds(max(moment)) - unix_seconds(min(moment)) AS seconds FROM sessions GROUP BY person, session
)
SELECT CASE WHEN seconds = 0 THEN 'bounce' WHEN seconds < 600 THEN 'short' WHEN seconds < 3600 THEN 'normal' ELSE 'long' END AS size, count(*) AS n, max(seconds) AS longest
FROM lengths GROUP BY 1 ORDER BY n DESC, size
