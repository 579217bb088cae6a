-- a self join from employees to their managers
SELECT w.id, w.name, m.name AS manager FROM employees w LEFT JOIN employees m ON w.manager = m.id
