-- timestamps with and without time zone in one comparison
SELECT id, ts = tn AS a, ts < tn AS b, CAST(ts AS TIMESTAMP_NTZ) AS c, CAST(tn AS TIMESTAMP) AS d FROM e
