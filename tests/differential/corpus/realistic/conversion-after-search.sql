-- people who searched and bought within the next three events
SELECT count(DISTINCT person) AS people FROM (
  SELECT person, kind, lead(kind, 1) OVER w AS k1, lead(kind, 2) OVER w AS k2, lead(kind, 3) OVER w AS k3 FROM events WINDOW w AS (PARTITION BY person ORDER BY moment, id)
) WHERE kind = 'search' AND 'buy' IN (k1, k2, k3)
