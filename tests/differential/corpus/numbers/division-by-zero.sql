-- a division by zero raises an error
SELECT id, n / k AS a FROM e
