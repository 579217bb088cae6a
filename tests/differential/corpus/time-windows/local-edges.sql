-- windows of local times
SELECT window.start > '1970-01-01' AS late, count(*) AS n FROM e GROUP BY window(tn, 3600000000)
