-- a semi join with equality and an inequality
SELECT x.id FROM x LEFT SEMI JOIN y ON x.k = y.k AND x.v <> y.v
