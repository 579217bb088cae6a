-- approx_count_distinct, by the default deviation and by another
SELECT g, approx_count_distinct(id) AS n, approx_count_distinct(s, 0.02) AS m FROM g GROUP BY g
