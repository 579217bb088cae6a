-- abs, sign and negation
SELECT id, abs(n) AS a, sign(d152) AS b, signum(k) AS c, negative(d52) AS d FROM e
