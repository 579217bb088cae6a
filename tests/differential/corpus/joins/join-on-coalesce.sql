-- a join on coalesced keys
SELECT x.id, y.id FROM x JOIN y ON coalesce(x.k, -1) = coalesce(y.k, -1) AND x.v = y.v
