-- quoted names with spaces and dots
SELECT o.`Mixed Case` AS `a b`, `dot.ted` FROM `odd names` AS o
