-- timestampadd of units
SELECT id, timestampadd(HOUR, k, tn) AS a, dateadd(MONTH, 1, dt) AS b FROM e WHERE year(tn) < 9000 AND year(dt) < 9000
