-- TRY_CAST of texts with exponents, however many digits they have
SELECT a, try_cast(a AS DECIMAL(4,2)) AS t, try_cast(a AS DECIMAL(10,2)) AS u, try_cast(a AS DECIMAL(38,0)) AS v, try_cast(a AS DECIMAL(38,38)) AS w
FROM VALUES ('9.8765e1'), ('9.9999e1'), ('123456789.12e-3'), ('1e-99'), ('1e'), ('e1'), ('.e1'), ('1e1e1'), ('1.5e1f'), ('1e 1'), ('1e999'),
  ('-1E37'), ('9.99e37'), ('1e38'), ('1234567890123456789012345678901234567890e-20'), ('-4.9999e-3'), ('5e-3'), ('0.00000000000000000005e20'),
  ('12e-39'), ('5e-39'), ('4e-39'), ('99.994999e0'), ('99.995e0') AS t(a)
