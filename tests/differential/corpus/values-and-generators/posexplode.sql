-- posexplode with two aliases
SELECT id, posexplode(ys) AS (p, y) FROM tree
