-- a left semi join gives each row once
SELECT id, k FROM x LEFT SEMI JOIN y ON x.k = y.k
