-- corr and covariances
-- rounded: 1, 2, 3
SELECT h, corr(ti, si) AS a, covar_pop(ti, d52) AS b, covar_samp(si, ti) AS c FROM g GROUP BY h
