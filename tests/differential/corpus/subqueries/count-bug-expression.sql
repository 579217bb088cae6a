-- an expression of COUNT and SUM over no matching rows
SELECT id, (SELECT coalesce(sum(y.v), 0) + count(*) * 10 FROM y WHERE y.kl = x.kl) AS n FROM x
