-- sine, cosine and degrees
-- on: some
SELECT id, sin(k) AS a, cos(n) AS b, degrees(k) AS c FROM e
