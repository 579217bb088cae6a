-- the result of CUBE joined to a table
SELECT q.a, q.n, u.id FROM (SELECT a, b, count(*) AS n FROM t GROUP BY CUBE (a, b)) q JOIN u ON u.a = q.a AND u.b <=> q.b
