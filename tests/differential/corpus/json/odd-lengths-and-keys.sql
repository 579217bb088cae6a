-- json_array_length and json_object_keys of odd texts run again on Spark
-- on: some
SELECT id, json_array_length(js) AS n, json_object_keys(js) AS keys FROM jt
