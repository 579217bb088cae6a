-- a running list
-- on: some
SELECT id, collect_list(v) OVER (PARTITION BY k ORDER BY id) AS l FROM x
