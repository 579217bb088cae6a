-- precision and scale of decimal quotients
SELECT id, d52 / d40 AS a, d104 / 3 AS b, d152 / nullif(d52, 0) AS c FROM e WHERE d40 <> 0
