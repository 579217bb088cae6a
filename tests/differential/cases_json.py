"""Which expressions prove the functions of JSON, over the columns of table `jt`: `js` holds JSON,
`odd` also texts that are none, or only to Spark.
"""

from __future__ import annotations

NATIVE: dict[str, list[str]] = {
    "get_json_object": ["get_json_object(concat('x', js), '$.a')", "get_json_object(concat('t', odd), '$.a')", "get_json_object(get_json_object(get_json_object(js, '$.a'), '$.a'), '$.a')", "get_json_object(get_json_object(get_json_object(get_json_object(odd, '$[1]'), '$.a'), '$.x'), '$.y')", "get_json_object(to_json(struct(CAST(id AS DOUBLE) AS a, get_json_object(js, '$.a') AS b)), '$.b')", "CASE WHEN id % 2 = 0 THEN get_json_object(get_json_object(js, '$.e'), '$.f') END",  "get_json_object(concat('\\u00a0', js), '$.a')",
        "get_json_object(js, '$.a')", "get_json_object(js, '$.b')", "get_json_object(js, '$.c')", "get_json_object(js, '$.d')", "get_json_object(js, '$.d[1]')", "get_json_object(js, '$.d[0][1]')",
        "get_json_object(js, '$.d[1].x')", "get_json_object(js, '$.e.f')", "get_json_object(js, '$.e')", "get_json_object(js, '$.a[1].b')", "get_json_object(js, '$.a.a.a')", "get_json_object(js, '$[0]')",
        "get_json_object(js, '$[1].a')", "get_json_object(js, '$[1][0]')", "get_json_object(odd, '$.a')", "get_json_object(odd, '$[0]')", "get_json_object('{\"a\":[1,true]}', '$.a')", "get_json_object(CAST(NULL AS STRING), '$.a')",
        "get_json_object(js, '$')", "get_json_object(js, '$.*')", "get_json_object(js, '$.d[*]')", "get_json_object(js, 'a')", "get_json_object('a,b', '$[1].a')", "get_json_object(concat('{', '}'), '$.a')", "get_json_object(concat('{', 'x'), '$.a')", "array_join(transform(array(js, odd, 'x'), t -> get_json_object(t, '$.a')), '|', 'no')", "get_json_object(js, \"$['a']\")", "get_json_object(js, js)", "get_json_object(js, CAST(NULL AS STRING))", "get_json_object(odd, concat('$[', id % 3, ']'))",
    ],
    "from_json": [
        "from_json(js, 'a INT, b STRING')", "from_json(js, 'a STRING')", "from_json(js, 'struct<c:boolean,e:struct<f:string>>')", "from_json(js, 'array<int>')", "from_json(odd, 'a BIGINT, d ARRAY<STRING>')",
        "from_json(js, 'd ARRAY<ARRAY<INT>>')", "from_json(js, 'a DOUBLE, zz TINYINT')", "from_json(odd, 'array<struct<a:int>>')", "from_json(js, 'A INT')",
        "from_json(js, 'map<string,string>')", "from_json(odd, 'map<string,int>')", "from_json(js, 'e MAP<STRING, STRING>, a INT')", "from_json(js, 'map<string,array<int>>')", "from_json(js, 'map<string,map<string,boolean>>')", "from_json(js, 'a MAP<STRING, STRUCT<b: INT>>')",
        "from_json(concat('{\"', js, '\":1}'), 'map<string,int>')", "from_json(concat('{\"k', id % 3, '\":', id, ',\"k1\":null,\"\":5,\"K1\":7}'), 'map<string,bigint>')", "from_json(concat('{\"a.b\":{\"$\":', id, '},\"\\\\u00e9\":{}}'), 'map<string,map<string,int>>')",
        "from_json(concat('{\"a\":\"', day, '\",\"b\":[\"', day, '\"]}'), 'a DATE, b ARRAY<DATE>')", "from_json(concat('{\"a\":\"', day, '\"}'), 'a TIMESTAMP')", "from_json(concat('{\"a\":\"', day, '\"}'), 'a TIMESTAMP_NTZ')", "from_json(concat('{\"a\":{\"b\":\"', day, '\"}}'), 'a MAP<STRING, TIMESTAMP>')", "from_json(js, 'a DATE, b TIMESTAMP')",
        "from_json(to_json(struct(map(odd, id) AS a, CAST(day AS STRING) AS b)), 'a MAP<STRING, INT>, b STRING')", "from_json(concat('{\"a\":[', id, ',null,', id / 7, '],\"b\":{\"c\":\"', id, '\",\"d\":null}}'), 'a ARRAY<DOUBLE>, b STRUCT<c: STRING, d: BOOLEAN, e: INT>')",
    ],
    "schema_of_json": [
        f"schema_of_json('{text}')"
        for text in (
            '{"a":1}', '{"b":1,"a":"x","c":null,"d":[1,2.5],"e":[],"g":{"y":1,"x":true},"h":[{"p":1},{"q":2}]}', "[1,2]", "1", '"x"', "null", " true ", "-1.5e3", '{"A":1,"a":2,"_b":null,"B":0}', '{"a b":1,"x-y":3,"select":4,"1a":5,"a`b":6,"c.d":7,"":8}'.replace(',"":8', ""),
            "[]", '[{"a":1},{"a":"x"},null]', "[null,1]", '["a",1]', "[1,true]", '[[1],["x"],null]', '[{"a":[]},{"a":[{"b":1}]}]', '[{"a":{"b":1}},{"a":{"c":1.0}},{"a":null}]', '[{"a":1},[1]]', "[[1,[2]],[[3.5]]]", '{"d":"2024-01-01","e":999999999999999999,"f":-0}', '{"a":"{type}"}', '{"{0}":{"{type}":1}}', "[1,1.5]",
        )
    ],
    "json_array_length": ["json_array_length(concat('/', js))", "json_array_length(js)", "json_array_length(odd)", "json_array_length('[1,')", "json_array_length('[1,[2,3]] x')", "json_array_length(concat('[', ']'))"],
    "json_object_keys": ["json_object_keys(concat('u', odd))", "json_object_keys(js)", "json_object_keys(odd)", "json_object_keys('{')", "json_object_keys(\"{'a':1}\")"],
    "to_json": ["to_json(struct(id, js))", "to_json(map(odd, id))", "to_json(array(js, odd))"],
}  # fmt: skip

REFUSED: dict[str, list[str]] = {
    "from_json": ["from_json('%', 'a INT')", "from_json(js, 'a INT', map('mode', 'FAILFAST'))", "from_json(js, 'a MAP<STRING,INT>, b DECIMAL(10,2)')", "from_json(js, 'a DATE', map('dateFormat', 'yyyy'))", "from_json(js, 'a MAP<INT,INT>')", "from_json(js, 'a BINARY')", "from_json(js, 'a INT, A INT')", "from_json(js, 'a INT, _corrupt_record STRING')"],
    "schema_of_json": ["schema_of_json('{\"a\":12345678901234567890}')", "schema_of_json('{}')", "schema_of_json('[{\"a\":{}}]')", "schema_of_json('{\"a\":1,\"a\":\"x\"}')", "schema_of_json('{\"\":1}')", "schema_of_json('{a:1}', map('allowUnquotedFieldNames', 'true'))", "schema_of_json('{\"ü\":1}')", "schema_of_json('')"],
}  # fmt: skip
