-- employees with their manager and the manager's manager
SELECT e.id, e.name, m.name AS manager, g.name AS above, CASE WHEN e.salary > m.salary THEN 'more' ELSE 'not more' END AS pay
FROM employees e LEFT JOIN employees m ON e.manager = m.id LEFT JOIN employees g ON m.manager = g.id
