-- JSON values in CASE and coalesce
SELECT id, coalesce(get_json_object(doc, '$.a'), get_json_object(doc, '$.b'), 'none') AS v, CASE WHEN get_json_object(doc, '$.a') = 'x' THEN 1 ELSE 0 END AS x
FROM VALUES (1, '{"a": "x"}'), (2, '{"b": "y"}'), (3, '{}') AS j(id, doc)
