-- grouping by an array and by a struct
SELECT ai, st, count(*) AS n FROM np GROUP BY ai, st
