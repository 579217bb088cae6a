-- minimum and maximum of every type of column
SELECT g, min(s) AS a, max(s) AS b, min(b) AS c, max(dt) AS d, min(ts) AS e, max(tn) AS f, min(bin) AS h, max(d384) AS i FROM g GROUP BY g
