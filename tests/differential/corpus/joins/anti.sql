-- a left anti join keeps NULL keys
SELECT id, k FROM x LEFT ANTI JOIN y ON x.k = y.k
