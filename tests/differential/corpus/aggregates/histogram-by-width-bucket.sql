-- a histogram by width_bucket
SELECT width_bucket(ti, -128, 128, 4) AS bucket, count(*) AS n FROM g GROUP BY width_bucket(ti, -128, 128, 4)
