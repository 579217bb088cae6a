-- constants 0.0 and -0.0, which are equal but not the same
-- on: some
SELECT id, string(d + -0.0D) AS p, string(d + 0.0D) AS q, string(-0.0D) AS r, string(0.0D) AS s FROM t
