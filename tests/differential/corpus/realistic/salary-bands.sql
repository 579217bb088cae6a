-- salaries against the band of the department
SELECT id, department, salary, round(salary - avg(salary) OVER (PARTITION BY department), 2) AS apart, ntile(4) OVER (PARTITION BY department ORDER BY salary, id) AS quartile
FROM employees WHERE salary IS NOT NULL
