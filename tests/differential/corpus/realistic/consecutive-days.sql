-- the longest run of consecutive days, found by max_by over a struct
WITH days AS (SELECT DISTINCT person, CAST(moment AS DATE) AS day FROM events),
islands AS (SELECT person, day, date_sub(day, CAST(row_number() OVER (PARTITION BY person ORDER BY day) AS INT)) AS anchor FROM days),
runs AS (SELECT person, anchor, count(*) AS length, min(day) AS since FROM islands GROUP BY person, anchor)
SELECT person, max(length) AS longest, max_by(since, struct(length, since)) AS since FROM runs GROUP BY person
