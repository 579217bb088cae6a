-- from_json of members that are dates, times and maps
SELECT id, from_json(concat('{"a":"2024-02-', 10 + id % 19, '","b":"2024-02-29T10:11:', 10 + id, '.5","c":{"k', id % 2, '":"x","":null}}'), 'a DATE, b TIMESTAMP, c MAP<STRING,STRING>') AS v FROM jt
