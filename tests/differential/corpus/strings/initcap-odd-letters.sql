-- initcap of odd letters
SELECT id, initcap(s) AS a FROM e
