-- EXISTS in the select list
SELECT id, EXISTS (SELECT 1 FROM y WHERE y.k = x.k) AS found FROM x
