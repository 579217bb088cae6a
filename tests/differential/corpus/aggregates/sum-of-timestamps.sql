-- timestamps are added up as seconds since 1970
-- rounded: 0, 1
SELECT sum(ts) AS a, avg(ts) AS b, min(ts) AS c FROM e WHERE ts BETWEEN TIMESTAMP'1990-01-01' AND TIMESTAMP'2030-01-01'
