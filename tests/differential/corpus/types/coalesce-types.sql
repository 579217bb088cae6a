-- the common type of coalesce, nvl and nullif
SELECT id, coalesce(ti, l) AS a, coalesce(d52, d104, 0) AS b, nvl(f, d) AS c, nullif(l, k) AS d, coalesce(dt, ts) AS f FROM e
