-- precision and scale of sum, avg, min and max of decimals
SELECT g, sum(d52) AS a, avg(d52) AS b, sum(d152 * 2) AS c, avg(gc) AS d, min(d384) AS f FROM g GROUP BY g
