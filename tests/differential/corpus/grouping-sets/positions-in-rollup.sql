-- positions in ROLLUP and CUBE beside a plain one
SELECT k, ks, kb, count(*) FROM l GROUP BY (1), ROLLUP((2), (kb, 2)), CUBE((3))
