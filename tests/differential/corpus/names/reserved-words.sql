-- reserved words as quoted names
SELECT `select`, sum(`Upper`) AS `from` FROM `odd names` GROUP BY `select`
