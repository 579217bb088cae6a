-- a join on a JSON value
SELECT j.id, x.id AS xid FROM x JOIN VALUES (1, '{"ks": "a"}'), (2, '{"ks": null}'), (3, '{"other": "b"}'), (4, '{"ks": ""}') AS j(id, doc) ON x.ks = get_json_object(doc, '$.ks')
