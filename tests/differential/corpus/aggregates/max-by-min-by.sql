-- max_by and min_by ignore rows without an order
SELECT h, max_by(s, id) AS a, min_by(g, id) AS b, max_by(id, d384) AS c FROM g GROUP BY h
