-- RANGE by months around a timestamp without time zone
SELECT id, count(*) OVER (ORDER BY tn RANGE BETWEEN INTERVAL 2 MONTHS PRECEDING AND INTERVAL 1 MONTH FOLLOWING) AS n FROM g
