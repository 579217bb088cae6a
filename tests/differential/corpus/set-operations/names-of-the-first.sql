-- names come from the first branch
SELECT a AS first, b AS `second name` FROM t UNION SELECT id, b FROM u
