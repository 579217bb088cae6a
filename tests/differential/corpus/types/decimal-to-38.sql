-- products and quotients cut at 38 digits
SELECT id, d200 * d52 AS a, d200 / 7 AS b, d152 * d152 AS c FROM e WHERE abs(d152) < 1000000
