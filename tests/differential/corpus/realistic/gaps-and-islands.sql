-- islands: runs of readings in one state
WITH runs AS (
  SELECT sensor, taken, state,
    row_number() OVER (PARTITION BY sensor ORDER BY taken) - row_number() OVER (PARTITION BY sensor, state ORDER BY taken) AS island
  FROM readings
)
SELECT sensor, state, min(taken) AS since, max(taken) AS until, count(*) AS n FROM runs GROUP BY sensor, state, island
