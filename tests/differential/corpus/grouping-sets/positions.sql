-- positions of select items in sets, with and without parentheses
SELECT a, b, sum(v), grouping_id() FROM t GROUP BY a, b GROUPING SETS ((1), (2), (), (a, 2))
