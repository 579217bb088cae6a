-- a recursive CTE over a tree of employees runs on Spark
-- on: spark
WITH RECURSIVE chain(id, depth) AS (SELECT id, 0 FROM employees WHERE manager IS NULL UNION ALL SELECT e.id, depth + 1 FROM employees e JOIN chain c ON e.manager = c.id)
SELECT depth, count(*) AS n FROM chain GROUP BY depth
