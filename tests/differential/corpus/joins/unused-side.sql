-- a left join of which no column is read, on a key that is not unique
SELECT count(*) AS n, sum(x.v) AS s FROM x LEFT JOIN y ON x.k = y.k
