-- A struct that is written out before IN is no column
SELECT id FROM x WHERE struct(k, ks) NOT IN (SELECT struct(k, ks) FROM y)
