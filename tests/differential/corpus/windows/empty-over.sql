-- OVER () over all rows
SELECT id, count(*) OVER () AS n, max(w) OVER () - w AS below FROM x
