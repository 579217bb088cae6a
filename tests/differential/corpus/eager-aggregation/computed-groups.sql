-- groups of expressions over one side and over both
SELECT length(x.ks) AS l, x.kb AND y.kb AS b, sum(x.w) AS s FROM x JOIN y ON x.k = y.k GROUP BY length(x.ks), x.kb AND y.kb
