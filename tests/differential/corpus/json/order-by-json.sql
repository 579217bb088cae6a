-- ORDER BY a JSON value with a limit
SELECT id, get_json_object(doc, '$.s') AS s FROM (SELECT id, concat('{"s": "', substring(city, 1, 3), '"}') AS doc FROM customers) ORDER BY s NULLS LAST, id LIMIT 9
