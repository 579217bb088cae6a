-- zeros of both signs stay apart below a join
SELECT x.kd, count(*) AS n, sum(x.w) AS s FROM x JOIN y ON x.k = y.k GROUP BY x.kd
