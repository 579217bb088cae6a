-- a CTE used three times with unlike filters
WITH q AS (SELECT k, ks, v FROM x JOIN (SELECT k AS yk FROM y) ON k = yk) SELECT (SELECT count(*) FROM q WHERE v > 0) AS a, (SELECT sum(v) FROM q WHERE ks = 'a') AS b, (SELECT max(k) FROM q) AS c
