"""Which expressions prove the functions of arrays, maps and structs, over the columns of table `n`.

`NATIVE[name]` must run on DuckDB and equal Spark, `REFUSED[name]` must not run on DuckDB; `OTHERS`
prove operators, casts and conditionals of such values. `WRONG` are refused by Spark, too.
"""

from __future__ import annotations

NATIVE: dict[str, list[str]] = {
    "get_field": ["st.f", "n.st.f", "sn.p.q", "sn.p.a", "n.sn.p.q", "sn.`A b`", "ast[0].f", "struct(i, s).s", "named_struct('a', NULL).a", "struct(st, su).st.f", "st['f']"],
    "array_item": ["ai[0]", "ai[j]", "ai[l]", "aa[0]", "aa[0][0]", "deep[0].m['a'][0]"],
    "get_fields": ["ast.f", "ast.g", "deep.x", "ast['f']"],
    "map_item": ["deep[0].m['a']", "mi[1]", "mi[i]", "ms['a']", "ms.a", "md[0.0D]", "md[d]", "md[-0.0D]", "ms.k"],
    "element_at": ["element_at(ai, 1)", "element_at(ai, -1)", "element_at(ai, j)", "element_at(mi, 1)", "element_at(mi, i)", "element_at(ms, s)"],
    "try_element_at": ["try_element_at(ai, j)", "try_element_at(ai, 7)", "try_element_at(mi, 2)"],
    "get": ["get(ai, 0)", "get(ai, j)", "get(ai, 2147483647)", "get(aa, 1)"],
    "array": ["array(i, j, 7)", "array(i, l)", "array(s, NULL)", "array(ai, bi)", "array(st, su)", "array(ai, array())", "array(d, 1)"],
    "size": ["size(ai)", "size(mi)", "cardinality(ast)", "size(filter(transform(ai, x -> abs(coalesce(x, 0) % 7)), y -> y > 2))", "size(array())"],
    "array_size": ["array_size(sa)"],
    "array_contains": ["array_contains(ai, 1)", "array_contains(ai, i)", "array_contains(ad, d)", "array_contains(aa, array(1, 2))", "array_contains(aa, ai)", "array_contains(ast, ast[0])", "array_contains(ai, 1L)", "array_contains(sa, s)", "array_contains(ast, struct(1 AS f, 'a' AS g))"],
    "array_distinct": ["array_distinct(ai)", "array_distinct(ad)", "array_distinct(sa)", "array_distinct(aa)", "array_distinct(ast)", "array_distinct(ab)", "array_distinct(array(array(d), array(0.0D)))", "array_distinct(array(struct(d AS x), struct(0.0D AS x)))"],
    "array_except": ["array_except(ai, bi)", "array_except(ad, bd)", "array_except(ai, al)", "array_except(aa, ba)", "array_except(ast, bst)", "array_except(array(array(d)), array(array(0.0D)))"],
    "array_intersect": ["array_intersect(ai, bi)", "array_intersect(ad, bd)", "array_intersect(sa, sb)", "array_intersect(ast, bst)", "array_intersect(aa, ba)", "array_intersect(array(array(d)), array(array(0.0D)))"],
    "array_union": ["array_union(ai, bi)", "array_union(ad, bd)", "array_union(ai, al)", "array_union(ast, bst)", "array_union(aa, ba)", "array_union(array(array(d)), array(array(0.0D)))"],
    "arrays_overlap": ["arrays_overlap(ai, bi)", "arrays_overlap(ad, bd)", "arrays_overlap(sa, sb)", "arrays_overlap(ast, bst)"],
    "array_join": ["array_join(sa, '-')", "array_join(sa, s)", "array_join(sa, ',', 'N')", "array_join(sa, ',', s)", "array_join(ai, ',')", "array_join(ab, ',', '?')", "array_join(ac, ',')", "array_join(sa, s, s)"],
    "array_max": ["array_max(ai)", "array_max(ad)", "array_max(sa)", "array_max(aa)", "array_max(ast)", "array_max(ay)"],
    "array_min": ["array_min(ai)", "array_min(ad)", "array_min(sa)", "array_min(aa)", "array_min(ast)", "array_min(ab)"],
    "array_position": ["array_position(ai, 1)", "array_position(ai, i)", "array_position(ad, d)", "array_position(sa, s)", "array_position(aa, array(1))", "array_position(ai, l)"],
    "array_remove": ["array_remove(ai, 1)", "array_remove(ai, i)", "array_remove(ad, d)", "array_remove(sa, s)", "array_remove(aa, array(1))", "array_remove(ast, ast[0])"],
    "array_append": ["array_append(ai, i)", "array_append(sa, NULL)", "array_append(ai, l)", "array_append(aa, ai)"],
    "array_prepend": ["array_prepend(ai, i)", "array_prepend(ast, ast[0])"],
    "array_insert": ["array_insert(ai, 2, 9)", "array_insert(ai, j, i)", "array_insert(ai, 7, 1)", "array_insert(ai, -7, 1)", "array_insert(sa, -1, s)", "array_insert(aa, k, ai)"],
    "array_compact": ["array_compact(ai)", "array_compact(ast)", "array_compact(aa)"],
    "array_repeat": ["array_repeat(i, 3)", "array_repeat(s, k)", "array_repeat(ai, j)", "array_repeat(st, 2)"],
    "sort_array": ["sort_array(ai)", "sort_array(ai, false)", "sort_array(ad)", "sort_array(ad, false)", "sort_array(sa)", "sort_array(aa)", "sort_array(aa, false)", "sort_array(ast)", "sort_array(ast, false)", "sort_array(ab)", "sort_array(map_keys(mi))"],
    "array_sort": ["array_sort(ai)", "array_sort(ad)", "array_sort(aa)", "array_sort(ast)", "array_sort(sa)"],
    "slice": ["slice(ai, 1, 2)", "slice(ai, 2, 2)", "slice(ai, -2, 2)", "slice(ai, j, k)", "slice(ai, -3, 2147483647)", "slice(ast, 1, k)", "slice(ai, 1L, 1)"],
    "flatten": ["flatten(aa)", "flatten(array(ai, bi))", "flatten(array(aa, ba))"],
    "array_concat": ["concat(ai, bi)", "concat(ai, al)", "concat(sa, sb, array('x'))", "concat(aa, ba)", "ai || bi"],
    "array_reverse": ["reverse(ai)", "reverse(ast)"],
    "arrays_zip": ["arrays_zip(ai, sa)", "arrays_zip(ai, sort_array(bi), sn.p.a)", "arrays_zip(ai)", "arrays_zip((sn.p.a), (ai))"],
    "sequence": ["sequence(1, k)", "sequence(j, k)", "sequence(k, j, -1)", "sequence(j, k, 2)", "sequence(l, l + 3)", "sequence(CAST(j AS TINYINT), CAST(k AS TINYINT))", "sequence(k, 1, -2)"],
    "transform": ["transform(ai, x -> x)", "transform(sa, x -> x || 'z')", "transform(al, x -> x + 1)", "transform(al, (x, i) -> x + i)", "transform(ai, (x, i) -> i)", "transform(ai, x -> x > i)", "transform(ai, x -> coalesce(x, i))", "transform(al, X -> x * 2)", "transform(aa, x -> size(x))", "transform(aa, x -> transform(x, y -> y + 1))", "transform(aa, x -> transform(x, y -> y + size(x)))", "transform(aa, (x, i) -> transform(x, (y, j) -> y + i * 10 + j))", "transform(ast, x -> x.f)", "transform(ast, x -> x.f + k)", "transform(ast, x -> struct(x.g AS a, x.f))", "transform(ai, x -> struct(x, i))", "transform(ai, i -> i)", "transform(sn.p.a, x -> x + sn.p.q)", "transform(deep, x -> x.m['a'])", "transform(deep, x -> map_keys(x.m))", "transform(array(k, 1), x -> 10 / x)", "transform(ai, x -> CASE WHEN x > 0 THEN 'p' ELSE 'n' END)", "transform(ad, x -> x = 0)"],
    "filter": ["filter(ai, x -> x > 0)", "filter(ai, (x, i) -> i > 0)", "filter(ast, x -> x.f > 0 AND x.g IS NOT NULL)", "filter(sa, x -> x = s)", "filter(aa, x -> exists(x, y -> y = 1))", "filter(ai, x -> NULL)"],
    "exists": ["exists(ai, x -> x > 2)", "exists(ai, x -> x IS NULL)", "exists(ast, x -> x.f = 1)", "exists(ai, x -> x = j)"],
    "forall": ["forall(ai, x -> x >= 0)", "forall(sa, x -> x <> '')", "forall(ai, x -> NULL)"],
    "aggregate": ["aggregate(al, 0L, (acc, x) -> acc + x)", "aggregate(al, 0L, (acc, x) -> acc + coalesce(x, 0))", "reduce(al, 0L, (acc, x) -> acc + coalesce(x, 0), acc -> acc * 2)", "aggregate(sa, '', (acc, x) -> acc || x)", "aggregate(sa, s, (acc, x) -> acc || coalesce(x, '-'), acc -> length(acc))", "aggregate(ai, CAST(array() AS ARRAY<INT>), (acc, x) -> array_append(acc, x))", "aggregate(al, struct(0L AS n, 0L AS t), (acc, x) -> struct(acc.n + 1L AS n, acc.t + coalesce(x, 0L) AS t), acc -> acc.t / acc.n)", "aggregate(ai, 0, (acc, x) -> x)", "aggregate(al, l, (acc, x) -> greatest(acc, x))", "aggregate(ad, 0.0D, (acc, x) -> acc + x)"],
    "zip_with": ["zip_with(ai, bi, (x, y) -> x = y)", "zip_with(ai, sa, (x, y) -> struct(x AS a, y AS b))", "zip_with(al, al, (x, y) -> x * y)", "zip_with(ai, bi, (x, y) -> coalesce(x, y, k))", "zip_with(aa, ba, (x, y) -> zip_with(x, y, (p, q) -> coalesce(p, 0) + coalesce(q, 0)))"],
    "map": ["map(i, 'a')", "map('a', i, 'b', j)", "map(j, s, k, 'x')", "map(1, 'a', 2, NULL)", "map('x', ai)", "map(ai, 1)"],
    "map_from_arrays": ["map_from_arrays(ai, sa)", "map_from_arrays(array('a', 'b'), array(i, j))", "map_from_arrays(array_distinct(array_compact(ai)), array_distinct(array_compact(ai)))"],
    "map_from_entries": ["map_from_entries(ast)", "map_from_entries(map_entries(mi))"],
    "map_keys": ["map_keys(mi)", "map_keys(md)"],
    "map_values": ["map_values(ms)"],
    "map_entries": ["map_entries(mi)", "map_entries(md)"],
    "map_concat": ["map_concat(mi, mj)", "map_concat(mi)", "map_concat(ms, map('zz', i))"],
    "map_contains_key": ["map_contains_key(mi, 1)", "map_contains_key(mi, i)", "map_contains_key(ms, s)", "map_contains_key(md, d)", "map_contains_key(mi, l)"],
    "str_to_map": ["str_to_map(s)", "str_to_map('a:1,b:2')", "str_to_map(concat(s, ':1;b:', s), ';', ':')", "str_to_map('a=1=2,b,=3', ',', '=')"],
    "map_filter": ["map_filter(mi, (k, v) -> k > 1)", "map_filter(ms, (k, v) -> v > 0 AND k <> '')", "map_filter(mi, (kk, v) -> kk = k)"],
    "transform_keys": ["transform_keys(mi, (k, v) -> k + 1)", "transform_keys(mi, (k, v) -> v)", "transform_keys(ms, (k, v) -> concat(k, 'x'))"],
    "transform_values": ["transform_values(mi, (k, v) -> concat(v, CAST(k AS STRING)))", "transform_values(ms, (k, v) -> v IS NULL)", "transform_values(md, (k, v) -> k)", "transform_values(ms, (k, v) -> map(k, v))"],
    "map_zip_with": ["map_zip_with(mi, mj, (k, a, b) -> concat(a, b))", "map_zip_with(mi, mj, (k, a, b) -> coalesce(a, b, CAST(k AS STRING)))", "map_zip_with(ms, ms, (k, a, b) -> a = b)"],
    "named_struct": ["struct(i, s)", "struct(i + 1, i AS q, ai[0], st.f, ms['k'])", "named_struct('a', i, 'b', s)", "named_struct('a', i, 'B c', named_struct('x', ai))", "(i, s)"],
    "hash": ["hash(ai)", "hash(st, su, sn)", "hash(aa, bi, l)", "hash(filter(ast, x -> x.f > 0))", "transform(aa, x -> hash(x, i))"],
    "xxhash64": ["xxhash64(ast, aa, ad, sa, ab, ac, ay)", "xxhash64(sn, id)"],
    "to_json": ["to_json(st)", "to_json(sn)", "to_json(ai)", "to_json(ad)", "to_json(sa)", "to_json(ast)", "to_json(mi)", "to_json(ms)", "to_json(deep)", "to_json(aa)", "to_json(ac)", "to_json(ay)", "to_json(struct(st, mi, deep, s, d, b))"],
    "element_index": ["transform(ai, (x, i) -> i * 2)"],
}  # fmt: skip

OTHERS: list[str] = [
    "CAST(ai AS STRING)", "CAST(ad AS STRING)", "CAST(sa AS STRING)", "CAST(ab AS STRING)", "CAST(ac AS STRING)", "CAST(ay AS STRING)", "CAST(aa AS STRING)", "CAST(st AS STRING)", "CAST(sn AS STRING)", "CAST(ast AS STRING)", "CAST(mi AS STRING)", "CAST(ms AS STRING)", "CAST(md AS STRING)", "CAST(deep AS STRING)", "TRY_CAST(deep AS STRING)", "transform(ast, x -> CAST(x AS STRING))", "CAST(array(st, su) AS ARRAY<STRING>)",
    "CAST(ai AS ARRAY<BIGINT>)", "CAST(ai AS ARRAY<STRING>)", "CAST(ac AS ARRAY<INT>)", "CAST(al AS ARRAY<INT>)", "CAST(ast AS ARRAY<STRUCT<x: BIGINT, y: STRING>>)", "CAST(mi AS MAP<BIGINT, STRING>)", "CAST(ms AS MAP<STRING, BIGINT>)", "CAST(st AS STRUCT<f: BIGINT, g: STRING, h: DOUBLE>)", "TRY_CAST(sa AS ARRAY<INT>)", "CAST(sa AS ARRAY<INT>)", "CAST(aa AS ARRAY<ARRAY<STRING>>)", "coalesce(ai, array(1))", "coalesce(ai, al)", "coalesce(st, su)", "CASE WHEN b THEN ai ELSE bi END", "IF(b, mi, mj)", "ai = bi", "ai <> bi", "ad = bd", "aa = ba", "st = su", "ast = bst", "ai = al", "st = named_struct('f', 1, 'g', 'a', 'd', 0.0D)", "ai IS NULL", "deep", "st", "mi", "ai < bi", "ai <= bi", "ad < bd", "ad >= bd", "aa < ba", "aa > ba", "st < su", "st >= su", "ast < bst", "sa <= sb", "ai <=> bi", "st <=> su", "ast <=> bst", "ad <=> bd", "ai <=> NULL", "ai IN (bi, array(1, 2), array(0))", "ad IN (bd, array(0.0D))", "st IN (su, named_struct('f', 0, 'g', 'a', 'd', 0.0D))", "st NOT IN (su, NULL)", "aa IN (ba)", "ast IN (bst, array())", "nullif(ai, bi)", "nullif(st, su)", "ai BETWEEN bi AND array(5)", "sn.p < named_struct('q', 1, 'a', array(1))",
]  # fmt: skip

REFUSED: dict[str, list[str]] = {
    "array_sort": ["array_sort(ai, (l, r) -> CASE WHEN l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END)", "array_sort(ai, (l, r) -> l - r)"],
    "named_struct": ["struct(i AS a, j AS A)", "named_struct('a', i, 'a', j)", "struct()"],
    "array": ["array()"],
    "size": ["size(map())"],
    "map": ["map(d, 1)"],
    "map_from_arrays": ["map_from_arrays(ad, ad)"],
    "to_json": ["to_json(md)", "to_json(st, map('ignoreNullFields', 'false'))"],
    "str_to_map": ["str_to_map(s, s, ':')", "str_to_map(s, '|', ':')"],
}  # fmt: skip

UNPLANNED: list[str] = [
    "array_contains(ast, st)", "map_from_entries(array(struct(1, s), struct(2, 'b')))", "map()", "mi['1']", "shuffle(ai)",
]  # fmt: skip

WRONG: list[str] = [
    "arrays_zip(ai, st.f, sa)", "aggregate(ai, 0, (acc, x) -> acc + l)", "ai['x']", "array_contains(mi, 1)", "array_distinct(array(mi))", "concat(ai, s)", "hash(mi)", "exists(ai, (x, i) -> true)", "filter(ai, x -> 1)", "i.x", "st.nope", "transform(ai, (x, y, z) -> x)", "transform(st.g, x -> x)",
]  # fmt: skip
