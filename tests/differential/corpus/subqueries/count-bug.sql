-- COUNT over no matching rows is 0, not NULL
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k) AS n, (SELECT count(*) + 1 FROM z WHERE z.k = x.k) AS one FROM x
