-- power, sqrt, exp and logarithms
SELECT id, power(k, 2) AS a, sqrt(k) AS b, exp(k) AS c, ln(k + 1) AS d FROM e
