-- a number in a row of GROUP BY is a constant
SELECT sum(v) FROM l GROUP BY (k, 2)
