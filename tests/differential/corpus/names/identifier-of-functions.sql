-- IDENTIFIER names functions and table functions
SELECT IDENTIFIER('abs')(a) AS x, IDENTIFIER('sum')(a) OVER (PARTITION BY b) AS y FROM t, IDENTIFIER('range')(0, 2)
