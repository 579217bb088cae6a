-- a running list runs on Spark: its order is not proven
-- on: some
SELECT id, collect_list(v) OVER (PARTITION BY k ORDER BY id) AS l FROM x
