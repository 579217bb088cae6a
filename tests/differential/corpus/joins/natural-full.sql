-- a natural full join
SELECT * FROM (SELECT k, v FROM x) NATURAL FULL JOIN (SELECT w, k FROM y)
