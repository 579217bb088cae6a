-- EXTRACT of fields of timestamps
SELECT id, extract(YEAR FROM ts) AS a, extract(HOUR FROM ts) AS b, extract(MINUTE FROM tn) AS c, extract(SECOND FROM ts) AS d, extract(YEAROFWEEK FROM dt) AS f FROM e
