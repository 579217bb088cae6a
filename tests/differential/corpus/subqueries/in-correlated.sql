-- correlated IN as a condition
SELECT id FROM x WHERE v IN (SELECT y.v FROM y WHERE y.k = x.k)
