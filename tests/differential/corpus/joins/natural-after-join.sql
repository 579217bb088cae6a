-- NATURAL and USING where the left side has a name twice
SELECT * FROM (SELECT a, b FROM t) x JOIN (SELECT a, b FROM u) y ON x.a = y.a NATURAL JOIN (SELECT a, b FROM u) z
