-- EXISTS as a condition
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND y.v > x.v)
