-- modulo of negative numbers
SELECT id, n % 5 AS a, pmod(n, 5) AS b, mod(l, -3) AS c FROM e
