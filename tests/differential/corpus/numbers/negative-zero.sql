-- the constant -0.0 alone
SELECT id, string(d + -0.0D) AS p, string(-0.0D) AS q FROM t WHERE id < 3
