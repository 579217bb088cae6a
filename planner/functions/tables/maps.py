"""Functions of maps."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import nested_rules as rule
from stagecoach.planner.functions import spell_collections as spell
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.functions.rules import first_type, fixed
from stagecoach.planner.plan.coercion import cast_literal, unified
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.types import BOOLEAN, NULL, STRING, DataType, array_of, common_type, map_of

# Delimiters of STR_TO_MAP are regular expressions to Spark; these mean themselves.
_PLAIN_DELIMITER = re.compile(r"[\w ,:;=&/%#@!~<>'\"-]", re.ASCII)


def _key(dtype: DataType) -> DataType:
    return dtype.fields[0].dtype


def _value(dtype: DataType) -> DataType:
    return dtype.fields[1].dtype


def _pairs(args: Args) -> Args:
    if len(args) % 2:
        raise AnalysisError("a key without a value")
    keys, values = unified(args[::2], "map"), unified(args[1::2], "map")
    for key in keys[:1]:
        rule.orderable(key.dtype)
    return tuple(x for pair in zip(keys, values, strict=True) for x in pair)


def _pairs_type(args: Args) -> DataType:
    return map_of(args[0].dtype, args[1].dtype) if args else map_of(NULL, NULL)


def _from_arrays(args: Args) -> Args:
    keys, values = rule.arrays(args)
    rule.orderable(rule.element(keys.dtype))
    return keys, values


def _from_arrays_type(args: Args) -> DataType:
    return map_of(rule.element(args[0].dtype), rule.element(args[1].dtype))


def _entries(args: Args) -> Args:
    array = rule.expect(args[0], "array")
    entry = rule.element(array.dtype)
    if entry.kind != "struct" or len(entry.fields) != 2:
        raise AnalysisError(f"expected an array of pairs, found {array.dtype}")
    rule.orderable(_key(entry))
    return (array,)


def _entries_map(args: Args) -> DataType:
    entry = rule.element(args[0].dtype)
    return map_of(_key(entry), _value(entry))


def _concatenated(args: Args) -> Args:
    if not args:
        raise UnsupportedSqlError("map_concat of nothing")
    target = rule.expect(args[0], "map").dtype
    for arg in args[1:]:
        target = rule.wider(target, rule.expect(arg, "map").dtype)
    return tuple(cast_literal(a, target) for a in args)


def _contains_key(args: Args) -> Args:
    if args[1].dtype == NULL:
        raise UnsupportedSqlError("an untyped NULL")
    return rule.map_key(args)


def _texts(args: Args) -> Args:
    given = tuple(rule.literal_of(a, STRING) for a in args)
    return (*given, *(Literal(STRING, d) for d in (",", ":")[len(args) - 1 :]))


def _refuse_delimiters(node: Call) -> str | None:
    for delimiter in node.args[1:]:
        if not isinstance(delimiter, Literal) or delimiter.value is None:
            return "the delimiter is not a literal"
        if not _PLAIN_DELIMITER.fullmatch(str(delimiter.value)):
            return "the delimiter may be a regular expression"
    return None


def _refuse_keys(node: Call) -> str | None:
    """Spark makes 0.0 of the key -0.0, in some functions; an untyped key is none of DuckDB's."""
    if rule.has_kind(_key(node.dtype), "float", "double", "void"):
        return f"{node.function} with keys of {_key(node.dtype)} is not proven"
    return None


def _map_lambda(args: Args) -> Args:
    return rule.expect(args[0], "map"), rule.with_body_type(args[1], args[1].dtype)


def _key_lambda(args: Args) -> Args:
    map_, key = _map_lambda(args)
    rule.orderable(key.dtype)
    return map_, key


def _zip_lambda(args: Args) -> Args:
    return (*_same_keys(args[:2]), rule.with_body_type(args[2], args[2].dtype))


def _same_keys(maps: Args) -> Args:
    left, right = (rule.expect(m, "map") for m in maps)
    key = rule.orderable(rule.tightest(_key(left.dtype), _key(right.dtype)))
    return tuple(cast_literal(m, map_of(key, _value(m.dtype))) for m in (left, right))


Given = Mapping[int, Expression]


def _key_and_value(given: Given, _: int) -> tuple[DataType, ...]:
    dtype = rule.expect(given[0], "map").dtype
    return _key(dtype), _value(dtype)


def _key_and_values(given: Given, _: int) -> tuple[DataType, ...]:
    left, right = (rule.expect(given[i], "map").dtype for i in (0, 1))
    key = common_type(_key(left), _key(right)) or _key(left)
    return key, _value(left), _value(right)


FUNCTIONS: tuple[Function, ...] = (
    Function("map", (0, 1 << 20), _pairs, _pairs_type, listed("map({*})"), spell.map_of_pairs, _refuse_keys, "maps"),
    Function("map_from_arrays", (2, 2), _from_arrays, _from_arrays_type, "map_from_arrays({0}, {1})", "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN map({0}, {1}) END", _refuse_keys, "maps"),
    Function("map_from_entries", (1, 1), _entries, _entries_map, "map_from_entries({0})", spell.map_from_entries, _refuse_keys, "maps"),
    Function("map_keys", (1, 1), rule.first_map, lambda a: array_of(_key(a[0].dtype)), "map_keys({0})", "map_keys({0})", proof="maps"),
    Function("map_values", (1, 1), rule.first_map, lambda a: array_of(_value(a[0].dtype)), "map_values({0})", "map_values({0})", proof="maps"),
    Function("map_entries", (1, 1), rule.first_map, rule.entries_type, "map_entries({0})", "map_entries({0})", proof="maps"),
    Function("map_concat", (0, 1 << 20), _concatenated, first_type, listed("map_concat({*})"), spell.map_concat, _refuse_keys, "maps"),
    Function("map_contains_key", (2, 2), _contains_key, fixed(BOOLEAN), "map_contains_key({0}, {1})", spell.MAP_CONTAINS_KEY, proof="maps"),
    Function("str_to_map", (1, 3), _texts, fixed(map_of(STRING, STRING)), "str_to_map({0}, {1}, {2})", spell.STR_TO_MAP, _refuse_delimiters, "maps"),
    Function("map_filter", (2, 2), rule.predicate(1), first_type, "map_filter({0}, {1})", spell.MAP_FILTER, proof="map_lambdas", lambda_types=_key_and_value),
    Function("transform_keys", (2, 2), _key_lambda, lambda a: map_of(a[1].dtype, _value(a[0].dtype)), "transform_keys({0}, {1})", spell.TRANSFORM_KEYS, _refuse_keys, "map_lambdas", _key_and_value),
    Function("transform_values", (2, 2), _map_lambda, lambda a: map_of(_key(a[0].dtype), a[1].dtype), "transform_values({0}, {1})", spell.TRANSFORM_VALUES, proof="map_lambdas", lambda_types=_key_and_value),
    Function("map_zip_with", (3, 3), _zip_lambda, lambda a: map_of(_key(a[0].dtype), a[2].dtype), "map_zip_with({0}, {1}, {2})", spell.MAP_ZIP_WITH, _refuse_keys, "map_lambdas", _key_and_values),
)  # fmt: skip
