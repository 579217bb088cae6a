-- sequences of instants and local times
SELECT id, sequence(placed, placed + INTERVAL 90 DAYS, INTERVAL 1 MONTH) AS a,
  sequence(placed, placed + INTERVAL 1 DAY, INTERVAL 25 MINUTE) AS b,
  sequence(placed, placed - INTERVAL 3 DAYS, INTERVAL '-1 0:0:1' DAY TO SECOND) AS c,
  sequence(CAST(placed AS TIMESTAMP_NTZ), TIMESTAMP_NTZ '2022-02-02', INTERVAL '-2-1' YEAR TO MONTH) AS d
FROM orders WHERE placed > '2022-02-02'
