-- averages of ints are doubles, of decimals decimals with four more digits
-- rounded: 1
SELECT h, avg(l) AS a, avg(d52) AS b, avg(d152) AS c FROM g GROUP BY h
