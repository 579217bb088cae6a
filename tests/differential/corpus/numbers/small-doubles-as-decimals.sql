-- Doubles that are written with exponents become decimals with all their digits
SELECT a, try_cast(a AS DECIMAL(10,10)) AS b, CAST(a AS DECIMAL(10,8)) AS c, CAST(a AS DECIMAL(18,18)) AS d, CAST(a AS DECIMAL(20,20)) AS e,
  CAST(a AS DECIMAL(30,28)) AS f, CAST(a AS DECIMAL(38,38)) AS g, CAST(a AS DECIMAL(5,1)) AS h
FROM VALUES (1.5E-5D), (-1.23456789E-5D), (1E-5D), (1E-4D), (9.99E-4D), (-5E-9D), (4.9E-324D), (0D), (1.2345678901234567E-7D), (2E-8D),
  (6.103515625E-5D), (9.5367431640625E-7D), (4.6566128730773926E-10D), (double('nan')), (NULL) AS t(a)
