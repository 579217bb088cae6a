-- correlated NOT IN with NULLs
SELECT id FROM x WHERE v NOT IN (SELECT y.v FROM y WHERE y.ks = x.ks)
