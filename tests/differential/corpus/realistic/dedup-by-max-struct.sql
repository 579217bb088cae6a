-- the latest row of each key by max_by over a struct
SELECT person, max_by(kind, struct(moment, id)) AS last_kind, max(moment) AS last FROM events WHERE kind IS NOT NULL GROUP BY person
