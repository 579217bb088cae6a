-- two subqueries of one table in one query
SELECT id, (SELECT min(v) FROM y WHERE y.k = x.k) AS lo, (SELECT max(v) FROM y WHERE y.k = x.k) AS hi FROM x
