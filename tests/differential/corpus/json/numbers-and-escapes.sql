-- get_json_object of numbers and escapes that Spark writes in its own way
SELECT id, get_json_object(js, '$.a') AS a, get_json_object(js, '$.d[1]') AS d1, get_json_object(js, '$.e.f') AS ef FROM jt
