-- The function struct before IN is one value
SELECT id FROM x WHERE `struct`(k, ks) IN (SELECT k, ks FROM y)
