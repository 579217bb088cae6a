-- the types of sums: bigint of ints, decimal with ten more digits
SELECT h, sum(ti) AS a, sum(si) AS b, sum(d52) AS c, sum(d152) AS d FROM g GROUP BY h
