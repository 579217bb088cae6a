-- grouping() and grouping_id() tell NULL of the data from NULL of the set
SELECT a, b, grouping(a) AS ga, grouping(b) AS gb, grouping_id() AS gid, grouping_id(a, b) AS gab FROM t GROUP BY CUBE (a, b)
