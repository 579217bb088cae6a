-- a table alias with names of columns
SELECT q.a, q.b FROM (SELECT id, v FROM x) AS q(a, b) WHERE q.b > 3
