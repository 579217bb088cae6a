-- the best two salaries of each department, with ties
SELECT department, name, salary FROM employees WHERE salary IS NOT NULL
QUALIFY dense_rank() OVER (PARTITION BY department ORDER BY salary DESC) <= 2
