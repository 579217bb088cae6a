-- the longest run of consecutive days of each person
WITH days AS (SELECT DISTINCT person, CAST(moment AS DATE) AS day FROM events),
islands AS (SELECT person, day, date_sub(day, CAST(row_number() OVER (PARTITION BY person ORDER BY day) AS INT)) AS anchor FROM days)
SELECT person, max(length) AS longest FROM (SELECT person, anchor, count(*) AS length FROM islands GROUP BY person, anchor) GROUP BY person
