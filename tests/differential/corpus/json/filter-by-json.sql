-- a filter and a grouping by a JSON value
SELECT get_json_object(doc, '$.kind') AS kind, count(*) AS n, max(id) AS last
FROM (SELECT id, concat('{"kind": "', kind, '", "page": "', page, '"}') AS doc FROM events)
WHERE get_json_object(doc, '$.page') <> '/' GROUP BY get_json_object(doc, '$.kind')
