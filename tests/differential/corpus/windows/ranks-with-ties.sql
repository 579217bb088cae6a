-- rank, dense_rank, percent_rank and cume_dist with ties
SELECT id, rank() OVER w AS a, dense_rank() OVER w AS b, percent_rank() OVER w AS c, cume_dist() OVER w AS d FROM x WINDOW w AS (PARTITION BY kb ORDER BY v)
