-- a filter and a grouping by a JSON value
SELECT get_json_object(js, '$.b') AS b, count(*) AS n FROM jt WHERE get_json_object(js, '$.a') IS NOT NULL GROUP BY get_json_object(js, '$.b')
