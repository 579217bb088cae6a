"""Queries that prove the functions which only Spark computes, over the edge tables.

Each runs distributed, with its other stages on DuckDB. What a sketch holds in bytes may depend on the
order of rows, so it is read by a function.
"""

from __future__ import annotations


def _estimates(state: str, *values: str, given: str = "true") -> str:
    """A sketch of each group, which a later stage reads."""
    groups = f"SELECT g, {state} FROM g WHERE {given} GROUP BY g"
    return f"SELECT g, {', '.join(values)} FROM ({groups}) AS q"


_WKB = "X'0101000000000000000000F03F0000000000000040'"
_XML = "concat('<a><b>', i, '</b><b>x</b></a>')"
_KLL = [
    _estimates(
        f"kll_sketch_agg_{t}({c}) AS a, kll_sketch_agg_{t}({c}, 50) FILTER (WHERE {c} > 0) AS b",
        f"kll_sketch_get_n_{t}(a) AS n",
        f"kll_sketch_get_quantile_{t}(a, 0.5) AS half",
        f"kll_sketch_get_quantile_{t}(a, array(0.1, 1.0)) AS some",
        f"kll_sketch_get_rank_{t}(a, {one}) AS share",
        f"kll_sketch_get_rank_{t}(a, array({one})) AS shares",
        f"kll_sketch_get_n_{t}(kll_sketch_merge_{t}(a, b)) AS both",
        f"kll_sketch_to_string_{t}(a) IS NULL AS text",
        given=f"{c} IS NOT NULL",  # Spark raises for a sketch of nothing
    )
    for t, c, one in (("bigint", "l", "1L"), ("double", "d", "1.0D"), ("float", "f", "FLOAT(1.0)"))
]
_KLL_MERGED = [
    f"SELECT kll_sketch_get_n_{t}(kll_merge_agg_{t}(a)) AS n "
    f"FROM (SELECT g, kll_sketch_agg_{t}({c}) AS a FROM g GROUP BY g) AS q WHERE g <> 'nulls'"
    for t, c in (("bigint", "l"), ("double", "d"), ("float", "f"))
]
_TUPLES = [
    _estimates(
        f"tuple_sketch_agg_{t}(i, {c}) AS a, tuple_sketch_agg_{t}(s, {c}, 12, 'max') AS b, theta_sketch_agg(i) AS h",
        f"tuple_sketch_estimate_{t}(a) AS n",
        f"tuple_sketch_summary_{t}(a) AS total",
        f"tuple_sketch_summary_{t}(b, 'max') AS largest",
        f"tuple_sketch_theta_{t}(a) AS theta",
        f"tuple_sketch_estimate_{t}(tuple_union_{t}(a, b)) AS u",
        f"tuple_sketch_estimate_{t}(tuple_intersection_{t}(a, b, 'min')) AS x",
        f"tuple_sketch_estimate_{t}(tuple_difference_{t}(a, b)) AS m",
        f"tuple_sketch_estimate_{t}(tuple_union_theta_{t}(b, h)) AS uh",
        f"tuple_sketch_estimate_{t}(tuple_intersection_theta_{t}(b, h)) AS xh",
        f"tuple_sketch_estimate_{t}(tuple_difference_theta_{t}(b, h)) AS mh",
    )
    for t, c in (("double", "CAST(h AS DOUBLE)"), ("integer", "h"))
]
_TUPLES_MERGED = [
    f"SELECT tuple_sketch_estimate_{t}(tuple_union_agg_{t}(a)) AS u, "
    f"tuple_sketch_estimate_{t}(tuple_intersection_agg_{t}(a)) AS x "
    f"FROM (SELECT g, tuple_sketch_agg_{t}(h, {c}) AS a FROM g GROUP BY g) AS q"
    for t, c in (("double", "CAST(h AS DOUBLE)"), ("integer", "h"))
]

QUERIES: list[str] = [
    _estimates(
        "hll_sketch_agg(s) AS a, hll_sketch_agg(i, 10) AS b",
        "hll_sketch_estimate(a) AS n",
        "hll_sketch_estimate(hll_union(a, b, true)) AS u",
    ),
    "SELECT hll_sketch_estimate(hll_union_agg(a)) AS u FROM (SELECT g, hll_sketch_agg(s) AS a FROM g GROUP BY g) AS q",
    "SELECT g, hll_sketch_estimate(hll_sketch_agg(s)) AS n, count(*) AS c FROM g WHERE h > 1 GROUP BY g HAVING count(*) > 1",
    "SELECT x.id, n FROM x JOIN (SELECT k, hll_sketch_estimate(hll_sketch_agg(v)) AS n FROM y GROUP BY k) AS q ON x.k = q.k",
    *_KLL,
    *_KLL_MERGED,
    _estimates(
        "theta_sketch_agg(s) AS a, theta_sketch_agg(s, 8) FILTER (WHERE h = 1) AS b",
        "theta_sketch_estimate(a) AS n",
        "theta_sketch_estimate(theta_union(a, b)) AS u",
        "theta_sketch_estimate(theta_intersection(a, b)) AS x",
        "theta_sketch_estimate(theta_difference(a, b)) AS m",
    ),
    "SELECT theta_sketch_estimate(theta_union_agg(a)) AS u, theta_sketch_estimate(theta_intersection_agg(a)) AS x "
    "FROM (SELECT g, theta_sketch_agg(h) AS a FROM g GROUP BY g) AS q",
    *_TUPLES,
    *_TUPLES_MERGED,
    "SELECT g, sort_array(approx_top_k(h, 10)) AS v FROM g GROUP BY g",
    "SELECT g, sort_array(approx_top_k_estimate(a)) AS v FROM (SELECT g, approx_top_k_accumulate(h) AS a FROM g GROUP BY g) AS q",
    "SELECT sort_array(approx_top_k_estimate(approx_top_k_combine(a), 3)) AS v FROM (SELECT g, approx_top_k_accumulate(h) AS a FROM g GROUP BY g) AS q",
    "SELECT g, count_min_sketch(h, 0.5D, 0.5D, 1) AS v FROM g GROUP BY g",
    "SELECT g, aggregate(histogram_numeric(h, 5), 0.0D, (a, x) -> a + x.y) AS v, histogram_numeric(d52, 100)[0].x IS NULL AS n FROM g GROUP BY g",
    "SELECT g, vector_sum(array(CAST(h AS FLOAT), FLOAT(1.0))) AS s, vector_avg(array(FLOAT(1.5), FLOAT(2.0))) AS a FROM g GROUP BY g",
    "SELECT g, schema_of_variant_agg(parse_json('{\"a\":1}')) AS v FROM g GROUP BY g",
    "SELECT id, variant_get(v, '$.e', 'string') AS a, try_variant_get(v, '$.d', 'array<string>') AS d, schema_of_variant(v) AS s, is_variant_null(v) AS n, "
    "is_valid_variant(v) AS k, CAST(variant_strip_nulls(v) AS STRING) AS t FROM (SELECT id, try_parse_json(odd) AS v FROM jt) AS q",
    "SELECT id, CAST(variant_insert(v, '$.zz', id) AS STRING) AS i, CAST(variant_set(v, '$.a', 1) AS STRING) AS s, CAST(variant_delete(v, '$.a') AS STRING) AS d, "
    "CAST(try_variant_insert(v, '$.a', 1) AS STRING) AS ti, CAST(try_variant_set(v, '$.b', 'x') AS STRING) AS ts "
    "FROM (SELECT id, parse_json(concat('{\"a\":', id, '}')) AS v FROM e) AS q",
    "SELECT id, CAST(variant_array_append(parse_json('[1]'), '$', id) AS STRING) AS a, CAST(try_variant_array_append(parse_json('{}'), '$', id) AS STRING) AS t, "
    "CAST(to_variant_object(named_struct('a', i)) AS STRING) AS o FROM e",
    f"SELECT id, xpath({_XML}, 'a/b/text()') AS v, xpath_boolean({_XML}, 'a/b') AS b, xpath_double({_XML}, 'a/b') AS d, xpath_number({_XML}, 'a/b') AS n, "
    f"xpath_float({_XML}, 'a/b') AS f, xpath_int({_XML}, 'a/b') AS i, xpath_long({_XML}, 'a/b') AS l, xpath_short({_XML}, 'count(a/b)') AS s, "
    f"xpath_string({_XML}, 'a/b[2]') AS t FROM e",
    f"SELECT id, from_xml({_XML}, 'b ARRAY<STRING>') AS f, to_xml(named_struct('a', i, 'b', dt)) AS t, schema_of_xml('<a><b>1</b></a>') AS s FROM e",
    f"SELECT id, st_srid(st_geogfromwkb({_WKB})) AS g, st_asbinary(st_geomfromwkb({_WKB}, 4326)) AS b, st_srid(st_setsrid(st_geomfromwkb({_WKB}), 3857)) AS s FROM e",
    "SELECT current_catalog() AS c, current_database() AS d, current_schema() AS s, current_path() AS p, current_user() AS u, user() AS v, session_user AS w, version() AS x, id FROM e",
]  # fmt: skip
