-- schema_of_json of a literal runs on Spark, whose type names it gives
-- on: some
SELECT schema_of_json('{"a": 1, "b": [true]}') AS s
