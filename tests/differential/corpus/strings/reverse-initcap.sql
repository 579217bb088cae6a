-- reverse and initcap
SELECT id, reverse(s) AS a, initcap(s) AS b FROM e
