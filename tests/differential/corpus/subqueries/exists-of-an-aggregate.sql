-- EXISTS over a global aggregate is always true
SELECT id FROM x WHERE EXISTS (SELECT max(y.v) FROM y WHERE y.k = x.k)
