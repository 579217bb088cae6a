-- substring with positive, zero and negative positions
SELECT id, substring(s, 2, 2) AS a, substring(s, 0, 1) AS b, substring(s, -2) AS c, left(s, 2) AS d, right(s, 3) AS f FROM e
