-- count_if and counts of conditions
SELECT g, count_if(b) AS a, count_if(i > 0 OR b) AS b, sum(if(b, 1, 0)) AS c FROM g GROUP BY g
