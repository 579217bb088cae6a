-- an inner join on an inequality alone
SELECT x.id, y.id FROM x JOIN y ON x.v > y.v + 6
