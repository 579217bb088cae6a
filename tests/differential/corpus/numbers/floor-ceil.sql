-- floor, ceil and truncation of decimals and doubles
SELECT id, floor(d152) AS a, ceil(d104) AS b, floor(d) AS c FROM e WHERE abs(d) < 1e9
