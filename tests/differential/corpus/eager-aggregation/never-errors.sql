-- an argument that only rows without a partner fail on
SELECT y.s, sum(10 div (x.id - 107)) AS s FROM x JOIN y ON x.k = y.k AND y.id > 400 AND x.id <> 107 GROUP BY y.s
