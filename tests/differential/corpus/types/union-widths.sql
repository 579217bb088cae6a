-- the widths of a union of all numbers
SELECT ti AS n FROM e UNION SELECT si FROM e UNION SELECT k FROM e
