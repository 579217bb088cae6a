-- readings with gaps filled by the last value
SELECT sensor, taken, coalesce(degrees, last_value(degrees) IGNORE NULLS OVER (PARTITION BY sensor ORDER BY taken ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS filled
FROM readings
