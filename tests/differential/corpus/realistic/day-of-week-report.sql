-- orders by weekday and hour, the busiest first
SELECT dayname(placed) AS day, hour(placed) div 6 AS part, count(*) AS n FROM orders WHERE placed IS NOT NULL GROUP BY ALL ORDER BY n DESC, day, part LIMIT 10
