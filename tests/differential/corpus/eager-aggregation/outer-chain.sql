-- rows of NULLs that a later join repeats
SELECT x.kb, count(*) AS n, count(y.w) AS nw, sum(y.w) AS s FROM x LEFT JOIN y ON x.k = y.k LEFT JOIN g ON x.v = g.h GROUP BY x.kb
