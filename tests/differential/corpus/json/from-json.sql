-- from_json runs on Spark: its parser differs
-- on: some
SELECT id, from_json(js, 'a INT, b STRING').b AS b FROM jt
