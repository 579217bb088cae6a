-- aggregates without GROUP BY
SELECT count(*) AS n, count(i) AS ni, sum(ti) AS s, min(si) AS lo, max(l) AS hi FROM g
