-- IN over a row of two columns
SELECT id FROM x WHERE (k, ks) IN (SELECT k, ks FROM y)
