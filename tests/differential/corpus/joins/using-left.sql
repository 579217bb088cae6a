-- USING gives one column of the key
SELECT * FROM x LEFT JOIN y USING (k, kb)
