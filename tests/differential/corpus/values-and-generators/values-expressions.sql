-- expressions and functions within VALUES
SELECT b, a FROM VALUES (1 + 1, upper('x')), (abs(-3), 'y' || 'z') AS v(a, b)
