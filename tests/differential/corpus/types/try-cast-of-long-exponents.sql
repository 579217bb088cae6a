-- Java reads no exponent as long as this one
-- on: some
SELECT a, try_cast(a AS DECIMAL(4,2)) AS t FROM VALUES ('1e-2147483648'), ('1e0001') AS t(a)
