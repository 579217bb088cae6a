-- TRY_CAST to decimals of words and of what looks like an exponent
SELECT a, try_cast(a AS DECIMAL(4,2)) AS t FROM VALUES ('e'), ('1e'), ('e1'), ('none'), ('1 e 1'), ('98.765'), ('-.5') AS t(a)
