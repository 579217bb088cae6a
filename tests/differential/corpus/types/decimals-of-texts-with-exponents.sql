-- Texts with exponents are rounded as decimals
SELECT a, CAST(a AS DECIMAL(5,2)) AS c FROM VALUES ('9.8765e1'), ('1.2345E1'), ('-9.9999e1'), (' .05E+1 '), ('0e99'), ('1'), ('1e-999'),
  ('00012345e-4'), ('+1.e2'), ('-.5e0') AS t(a)
