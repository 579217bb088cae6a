-- groups of a semi join by its key need no merging
SELECT k, ks, count(*) AS n, sum(w) AS s, avg(v) AS a FROM x WHERE k IN (SELECT k FROM y WHERE v > 0) GROUP BY k, ks
