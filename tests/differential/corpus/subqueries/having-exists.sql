-- EXISTS in HAVING on a group key
SELECT ks, max(v) AS m FROM x GROUP BY ks HAVING NOT EXISTS (SELECT 1 FROM y WHERE y.ks = x.ks AND y.v > 4)
