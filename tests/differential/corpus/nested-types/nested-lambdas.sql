-- a lambda within a lambda that reads an outer column
SELECT id, transform(aa, z -> filter(z, q -> q >= k)) AS a FROM n
