-- Texts with exponents are rounded as decimals
-- on: some
SELECT a, CAST(a AS DECIMAL(5,2)) AS c FROM VALUES ('9.8765e1'), ('1.2345E1'), ('-9.9999e1'), (' .05E+1 '), ('0e99'), ('1') AS t(a)
