-- get_json_object of texts that are no JSON, or only to Spark
SELECT id, get_json_object(odd, '$.a') AS a, get_json_object(odd, '$[0]') AS b FROM jt
