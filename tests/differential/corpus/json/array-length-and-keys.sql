-- json_array_length and json_object_keys
SELECT id, json_array_length(doc) AS n, json_object_keys(doc) AS keys FROM VALUES (1, '{"a": "x", "b": null}'), (2, '["p", "q", []]'), (3, NULL) AS j(id, doc)
