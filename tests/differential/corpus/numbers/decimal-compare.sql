-- comparisons of decimals with ints and doubles
SELECT id FROM e WHERE d52 > 1 AND d104 < 1.5 OR d152 = k OR d52 >= 2.5D
