-- json_array_length and json_object_keys of texts that are no JSON, or only to Spark
SELECT id, json_array_length(js) AS n, json_object_keys(js) AS keys FROM jt
