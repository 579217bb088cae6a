"""Which expressions prove the functions of JSON, over the columns of table `jt`: `js` holds JSON,
`odd` also texts that are none, or only to Spark.
"""

from __future__ import annotations

NATIVE: dict[str, list[str]] = {
    "get_json_object": ["get_json_object(concat('x', js), '$.a')", "get_json_object(concat('t', odd), '$.a')", "get_json_object(get_json_object(get_json_object(js, '$.a'), '$.a'), '$.a')", "get_json_object(get_json_object(get_json_object(get_json_object(odd, '$[1]'), '$.a'), '$.x'), '$.y')", "get_json_object(to_json(struct(CAST(id AS DOUBLE) AS a, get_json_object(js, '$.a') AS b)), '$.b')", "CASE WHEN id % 2 = 0 THEN get_json_object(get_json_object(js, '$.e'), '$.f') END",  "get_json_object(concat('\\u00a0', js), '$.a')",
        "get_json_object(js, '$.a')", "get_json_object(js, '$.b')", "get_json_object(js, '$.c')", "get_json_object(js, '$.d')", "get_json_object(js, '$.d[1]')", "get_json_object(js, '$.d[0][1]')",
        "get_json_object(js, '$.d[1].x')", "get_json_object(js, '$.e.f')", "get_json_object(js, '$.e')", "get_json_object(js, '$.a[1].b')", "get_json_object(js, '$.a.a.a')", "get_json_object(js, '$[0]')",
        "get_json_object(js, '$[1].a')", "get_json_object(js, '$[1][0]')", "get_json_object(odd, '$.a')", "get_json_object(odd, '$[0]')",
    ],
    "from_json": [
        "from_json(js, 'a INT, b STRING')", "from_json(js, 'a STRING')", "from_json(js, 'struct<c:boolean,e:struct<f:string>>')", "from_json(js, 'array<int>')", "from_json(odd, 'a BIGINT, d ARRAY<STRING>')",
        "from_json(js, 'd ARRAY<ARRAY<INT>>')", "from_json(js, 'a DOUBLE, zz TINYINT')", "from_json(odd, 'array<struct<a:int>>')", "from_json(js, 'A INT')", "from_json(concat('{\"a\":[', id, ',null,', id / 7, '],\"b\":{\"c\":\"', id, '\",\"d\":null}}'), 'a ARRAY<DOUBLE>, b STRUCT<c: STRING, d: BOOLEAN, e: INT>')",
    ],
    "json_array_length": ["json_array_length(concat('/', js))", "json_array_length(js)", "json_array_length(odd)"],
    "json_object_keys": ["json_object_keys(concat('u', odd))", "json_object_keys(js)", "json_object_keys(odd)"],
    "to_json": ["to_json(struct(id, js))", "to_json(map(odd, id))", "to_json(array(js, odd))"],
}  # fmt: skip

REFUSED: dict[str, list[str]] = {
    "get_json_object": ["get_json_object(js, '$')", "get_json_object(js, '$.*')", "get_json_object(js, '$.d[*]')", "get_json_object(js, 'a')", "get_json_object(js, \"$['a']\")", "get_json_object(js, js)"],
    "from_json": ["from_json(js, 'a INT', map('mode', 'FAILFAST'))", "from_json(js, 'a MAP<STRING,INT>, b DECIMAL(10,2)')", "from_json(js, 'a DATE')", "from_json(js, 'a INT, A INT')", "from_json(js, 'a INT, _corrupt_record STRING')", "from_json(js, 'map<string,int>')"],
    "schema_of_json": ["schema_of_json('{\"a\":1}')"],
}  # fmt: skip
