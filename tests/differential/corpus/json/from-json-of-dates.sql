-- from_json runs on Spark for members whose texts have several forms
-- on: some
SELECT id, from_json(js, 'a DATE, b STRING').b AS b FROM jt
