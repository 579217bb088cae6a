-- ORDER BY within a derived table without limit
SELECT count(*) AS n, sum(id) AS s FROM (SELECT id FROM x ORDER BY v)
