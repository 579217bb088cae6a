-- a full join: NULL keys stay alone on both sides
SELECT x.id, y.id FROM x FULL OUTER JOIN y ON x.ks = y.ks
