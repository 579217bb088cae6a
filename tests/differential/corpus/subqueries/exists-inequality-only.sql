-- EXISTS correlated by an inequality alone
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.v > x.v + 3)
