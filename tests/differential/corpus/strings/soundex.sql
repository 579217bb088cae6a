-- soundex
SELECT id, soundex(name) AS a FROM employees
