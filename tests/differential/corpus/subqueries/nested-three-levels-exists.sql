-- EXISTS three levels deep
SELECT id FROM x
WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND EXISTS (
  SELECT 1 FROM x x2 WHERE x2.v = y.v AND NOT EXISTS (SELECT 1 FROM y y2 WHERE y2.id = x2.id + 200 AND y2.kb)))
