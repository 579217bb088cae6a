-- standard deviations and variances
-- rounded: 1, 2, 3, 4
SELECT g, stddev_samp(ti) AS a, stddev_pop(ti) AS b, var_samp(d52) AS c, variance(h) AS d FROM g GROUP BY g
