-- the order of NaN, infinity and zeros
SELECT gd FROM g ORDER BY gd + 0.0D DESC NULLS LAST
