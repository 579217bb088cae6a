-- the order of NaN, infinity and zeros
SELECT gd + 0.0D AS d FROM g ORDER BY d DESC NULLS LAST
