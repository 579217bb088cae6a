-- a column of the table wins over an alias of its name
SELECT v + 100 AS k, k AS old FROM x WHERE k = 1
