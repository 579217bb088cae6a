-- Unicode names
SELECT `ключ` AS `größe`, count(*) AS `número` FROM `odd names` GROUP BY `ключ`
