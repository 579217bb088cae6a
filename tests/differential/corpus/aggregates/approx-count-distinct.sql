-- approx_count_distinct runs on Spark: the sketch differs
-- on: some
SELECT g, approx_count_distinct(id) AS n FROM g GROUP BY g
