-- get_json_object by fixed paths
SELECT id, get_json_object(doc, '$.a') AS a, get_json_object(doc, '$.b.c') AS bc, get_json_object(doc, '$.d[1]') AS d1, get_json_object(doc, '$.b') AS b
FROM VALUES (1, '{"a": "x", "b": {"c": "y"}, "d": ["p", "q"]}'), (2, '{"d": []}'), (3, NULL), (4, '["no object"]') AS j(id, doc)
