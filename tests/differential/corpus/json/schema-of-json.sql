-- schema_of_json of a literal, and one of a computed text, which Spark computes
-- on: some
SELECT schema_of_json('{"a": 1, "b": [true]}') AS s, schema_of_json(concat('[', '1]')) AS t, id FROM jt
