-- WITH inside a subquery of WHERE
SELECT id FROM x WHERE k IN (WITH q AS (SELECT k, count(*) AS n FROM y GROUP BY k) SELECT k FROM q WHERE n > 2)
