-- intervals of years and months in comparisons
SELECT id, make_ym_interval(k, n) > INTERVAL '1-6' YEAR TO MONTH AS a, extract(YEAR FROM make_ym_interval(k, n)) AS b FROM e
