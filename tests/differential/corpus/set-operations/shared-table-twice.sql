-- except of two filters of one table
SELECT id, k FROM x WHERE v > 0 EXCEPT SELECT id, k FROM x WHERE kb
