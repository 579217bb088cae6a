-- sine, cosine and degrees
-- rounded: 1, 2, 3
SELECT id, sin(k) AS a, cos(n) AS b, degrees(k) AS c FROM e
