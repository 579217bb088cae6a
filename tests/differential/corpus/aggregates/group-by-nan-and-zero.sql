-- NaN is one group, 0.0 and -0.0 too
SELECT gd, count(*) AS n FROM g GROUP BY gd
