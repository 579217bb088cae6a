-- a join written with a comma and WHERE
SELECT a.id, b.id FROM x a, y b WHERE a.k = b.k AND a.v > b.v
