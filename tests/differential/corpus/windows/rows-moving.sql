-- a moving average of three rows
SELECT id, avg(w) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM x
