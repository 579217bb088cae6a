-- a full join on null-safe equality
SELECT x.id, y.id FROM x FULL JOIN y ON x.ks <=> y.ks AND x.kb <=> y.kb
