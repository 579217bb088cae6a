-- NOT IN over a row of two columns: NULL decides only where the other column is equal
SELECT id FROM x WHERE (k, kb) NOT IN (SELECT k, kb FROM y WHERE k > 3 AND kb IS NOT NULL)
