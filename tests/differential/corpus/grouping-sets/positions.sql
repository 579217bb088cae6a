-- positions of select items in sets, with and without parentheses
SELECT k, ks, sum(v), grouping_id() FROM l GROUP BY k, ks GROUPING SETS ((1), (2), (), (k, 2))
