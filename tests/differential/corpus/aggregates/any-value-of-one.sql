-- any_value, first and last of a group with one value
SELECT h, any_value(h) AS a, first(h) AS b, last(h, true) AS c FROM g GROUP BY h
