-- a join on a cast JSON value
SELECT jt.id, t.id AS tid FROM jt JOIN t ON t.a = try_cast(get_json_object(js, '$.a') AS INT)
