-- the latest row of each key by row_number
SELECT id, person, kind, moment FROM (
  SELECT *, row_number() OVER (PARTITION BY person, page ORDER BY moment DESC, id DESC) AS rn FROM events
) WHERE rn = 1
