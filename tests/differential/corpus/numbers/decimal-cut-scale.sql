-- decimal results whose exact scale does not fit 38 digits
SELECT id, d384 * d104 * 0.0001000000 AS a, d104 / CAST(d52 AS DECIMAL(38,18)) AS b, d384 % CAST(d52 AS DECIMAL(38,30)) AS c, pmod(d152, d52) AS d FROM e WHERE d52 <> 0 AND d384 BETWEEN -1000000 AND 1000000
