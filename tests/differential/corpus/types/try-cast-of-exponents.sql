-- TRY_CAST of texts with exponents, however many digits they have
-- on: some
SELECT a, try_cast(a AS DECIMAL(4,2)) AS t, try_cast(a AS DECIMAL(10,2)) AS u
FROM VALUES ('9.8765e1'), ('9.9999e1'), ('123456789.12e-3'), ('1e-99'), ('1e'), ('e1'), ('none') AS t(a)
