-- NOT EXISTS keeps rows whose key is NULL
SELECT id, k FROM x WHERE NOT EXISTS (SELECT * FROM y WHERE y.k = x.k)
