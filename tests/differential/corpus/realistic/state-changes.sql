-- only readings whose state is not that before
SELECT sensor, taken, before, state FROM (
  SELECT sensor, taken, state, lag(state) OVER (PARTITION BY sensor ORDER BY taken) AS before FROM readings
) WHERE NOT before <=> state
