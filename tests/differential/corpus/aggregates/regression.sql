-- the regr functions
-- rounded: 1, 2, 3, 5, 6, 7
SELECT h, regr_slope(ti, id) AS a, regr_intercept(ti, id) AS b, regr_r2(ti, id) AS c, regr_count(ti, id) AS d,
  regr_avgx(ti, id) AS e, regr_sxx(ti, id) AS f, regr_sxy(ti, id) AS g FROM g GROUP BY h
