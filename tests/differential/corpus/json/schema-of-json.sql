-- schema_of_json of a literal
-- on: some
SELECT schema_of_json('{"a": 1, "b": [true]}') AS s
