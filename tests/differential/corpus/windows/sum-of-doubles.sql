-- a window sum of doubles
-- rounded: 1
SELECT id, sum(d) OVER (PARTITION BY h) AS s FROM g
