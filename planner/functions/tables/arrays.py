"""Functions of arrays."""

from __future__ import annotations

from collections.abc import Mapping

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import nested_rules as rule
from stagecoach.planner.functions import spell_collections as spell
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.functions.nested_rules import element
from stagecoach.planner.functions.rules import first_type, fixed, last_type
from stagecoach.planner.functions.spell_sequences import refuse_sequence, sequence_of_times
from stagecoach.planner.functions.tables.structs import duplicate_names
from stagecoach.planner.plan.coercion import cast_literal, unified
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.types import (
    BIGINT,
    BOOLEAN,
    INT,
    INTERVAL,
    NULL,
    STRING,
    DataType,
    Field,
    array_of,
    common_type,
    struct_of,
)


def _array_type(args: Args) -> DataType:
    return array_of(args[0].dtype if args else NULL)


def _element_type(args: Args) -> DataType:
    return element(args[0].dtype)


def _sized(args: Args) -> Args:
    kind = args[0].dtype.kind if args[0].dtype.kind == "map" else "array"
    return (rule.expect(args[0], kind),)


def _joined(args: Args) -> Args:
    array = rule.expect(args[0], "array")
    if not element(array.dtype).is_atomic:
        raise AnalysisError(f"expected an array of strings, found {array.dtype}")
    rest = (rule.literal_of(a, STRING) for a in args[1:])
    return (cast_literal(array, array_of(STRING)), *rest)


def _sorted(args: Args) -> Args:
    (array, *flags) = rule.comparable_array(args)
    for flag in flags:
        if not isinstance(flag, Literal) or flag.dtype != BOOLEAN or flag.value is None:
            raise UnsupportedSqlError("an order that is not true or false")
    return (array, *flags)


def _array_sorted(args: Args) -> Args:
    array = rule.expect(args[0], "array")
    if len(args) == 1:
        return rule.comparable_array(args)
    if args[1].dtype != INT:
        raise AnalysisError(f"the lambda must give an int, not {args[1].dtype}")
    return (array, args[1])


def _comparator(node: Call) -> str | None:
    return "DuckDB does not sort by a lambda" if len(node.args) == 2 else None


def _sequence(args: Args) -> Args:
    if any(a.dtype.is_datetime for a in args[:2]):
        return _sequence_of_times(args)
    types = {a.dtype for a in args} - {NULL}
    if types == {STRING}:
        raise UnsupportedSqlError("a sequence of texts")
    if not all(t.is_integral or t == STRING for t in types):
        raise AnalysisError("expected whole numbers, dates or timestamps")
    return unified(args, "sequence")


def _sequence_of_times(args: Args) -> Args:
    types = {a.dtype for a in args[:2]} - {NULL, STRING}
    common = types.pop()
    if types:
        common = common_type(common, types.pop()) or NULL
    if not common.is_datetime:
        raise AnalysisError("expected a start and an end of one type")
    step = args[2:]
    if step and step[0].dtype == INTERVAL:
        raise UnsupportedSqlError("a sequence by a calendar interval")
    if step and not step[0].dtype.is_interval:
        raise AnalysisError(f"the step of a sequence of {common} is a {step[0].dtype}")
    return (*(cast_literal(a, common) for a in args[:2]), *step)


def _sequence_text(node: Call) -> str:
    return sequence_of_times(node) if node.args[0].dtype.is_datetime else spell.sequence(node)


def _flattened(args: Args) -> Args:
    array = rule.expect(args[0], "array")
    if element(array.dtype).kind != "array":
        raise AnalysisError(f"expected an array of arrays, found {array.dtype}")
    return (array,)


def _repeated(args: Args) -> Args:
    if args[1].dtype not in (INT, NULL):
        raise AnalysisError(f"expected an int, found {args[1].dtype}")
    return args[0], cast_literal(args[1], INT)


def _sliced(args: Args) -> Args:
    return (rule.expect(args[0], "array"), *(rule.castable_int(a) for a in args[1:]))


def _zipped(args: Args) -> Args:
    """Names, which `stagecoach.planner.analysis.scalars.members` puts in, and arrays in turn."""
    if not args:
        raise UnsupportedSqlError("arrays_zip of nothing")
    for array in args[1::2]:
        rule.expect(array, "array")
    return rule.named_values(args)


def _zipped_type(args: Args) -> DataType:
    names = [str(n.value) for n in args[::2] if isinstance(n, Literal)]
    pairs = zip(names, args[1::2], strict=True)
    return array_of(struct_of(tuple(Field(n, element(a.dtype)) for n, a in pairs)))


def _folded(args: Args) -> Args:
    array, start, merge, *finish = args
    array = rule.expect(array, "array")
    if start.dtype == NULL or common_type(start.dtype, merge.dtype) != start.dtype:
        raise AnalysisError(f"the lambda must give {start.dtype} as the start does, not {merge.dtype}")  # fmt: skip
    if merge.dtype not in (start.dtype, NULL):
        raise AnalysisError(f"the lambda must give {start.dtype} as the start does, not {merge.dtype}")  # fmt: skip
    return (array, start, rule.with_body_type(merge, start.dtype), *finish)


def _zip_lambda(args: Args) -> Args:
    return (*rule.arrays(args[:2]), rule.with_body_type(args[2], args[2].dtype))


def _lambda_result(args: Args) -> DataType:
    return array_of(args[-1].dtype)


def _transformed(args: Args) -> Args:
    return rule.expect(args[0], "array"), rule.with_body_type(args[1], args[1].dtype)


Given = Mapping[int, Expression]


def _element_and_index(given: Given, _: int) -> tuple[DataType, ...]:
    return element(rule.expect(given[0], "array").dtype), INT


def _one_element(given: Given, _: int) -> tuple[DataType, ...]:
    return (element(rule.expect(given[0], "array").dtype),)


def _two_elements(given: Given, _: int) -> tuple[DataType, ...]:
    return _one_element(given, 0) * 2


def _both_elements(given: Given, _: int) -> tuple[DataType, ...]:
    return tuple(element(rule.expect(given[i], "array").dtype) for i in (0, 1))


def _accumulator(given: Given, position: int) -> tuple[DataType, ...]:
    if position == 3:
        return (given[1].dtype,)
    return given[1].dtype, element(rule.expect(given[0], "array").dtype)


def _spark_zip(node: Call) -> str:
    """ARRAYS_ZIP names its members by what it is given, so Spark gets structs of those names."""
    arrays = ", ".join(f"{{{i}}}" for i in range(1, len(node.args), 2))
    return f"CAST(arrays_zip({arrays}) AS {{type}})"


def _refuse_names(node: Call) -> str | None:
    return duplicate_names(node.dtype)


_compared = rule.array_and_value(compares=True)
_added = rule.array_and_value()


FUNCTIONS: tuple[Function, ...] = (
    Function("array", (0, 1 << 20), lambda a: unified(a, "array"), _array_type, listed("array({*})"), spell.array, proof="arrays"),
    Function("array_contains", (2, 2), rule.array_and_value(rule.wider, compares=True), fixed(BOOLEAN), "array_contains({0}, {1})", spell.array_contains, proof="arrays"),
    Function("array_distinct", (1, 1), rule.comparable_array, first_type, "array_distinct({0})", spell.array_distinct, proof="arrays"),
    Function("array_except", (2, 2), rule.same_arrays, first_type, "array_except({0}, {1})", spell.array_except, proof="arrays"),
    Function("array_intersect", (2, 2), rule.same_arrays, first_type, "array_intersect({0}, {1})", spell.array_intersect, proof="arrays"),
    Function("array_union", (2, 2), rule.same_arrays, first_type, "array_union({0}, {1})", spell.array_union, proof="arrays"),
    Function("arrays_overlap", (2, 2), rule.same_arrays, fixed(BOOLEAN), "arrays_overlap({0}, {1})", spell.arrays_overlap, proof="arrays"),
    Function("array_join", (2, 3), _joined, fixed(STRING), listed("array_join({*})"), spell.array_join, proof="arrays"),
    Function("array_max", (1, 1), rule.comparable_array, _element_type, "array_max({0})", spell.extreme("list_max"), proof="arrays"),
    Function("array_min", (1, 1), rule.comparable_array, _element_type, "array_min({0})", spell.extreme("list_min"), proof="arrays"),
    Function("array_position", (2, 2), _compared, fixed(BIGINT), "array_position({0}, {1})", spell.ARRAY_POSITION, proof="arrays"),
    Function("array_remove", (2, 2), _compared, first_type, "array_remove({0}, {1})", spell.ARRAY_REMOVE, proof="arrays"),
    Function("array_append", (2, 2), _added, first_type, "array_append({0}, {1})", "({0} || list_value({1}))", proof="arrays"),
    Function("array_prepend", (2, 2), _added, first_type, "array_prepend({0}, {1})", "(list_value({1}) || {0})", proof="arrays"),
    Function("array_insert", (3, 3), rule.array_and_value(position=2), first_type, "array_insert({0}, {1}, {2})", spell.ARRAY_INSERT, proof="arrays"),
    Function("array_compact", (1, 1), rule.first_array, first_type, "array_compact({0})", "list_filter({0}, lambda x_: x_ IS NOT NULL)", proof="arrays"),
    Function("array_repeat", (2, 2), _repeated, _array_type, "array_repeat({0}, {1})", "repeat(list_value({0}), CAST({1} AS BIGINT))", proof="arrays"),
    Function("array_size", (1, 1), rule.first_array, fixed(INT), "array_size({0})", "CAST(len({0}) AS INTEGER)", proof="arrays"),
    Function("size", (1, 1), _sized, fixed(INT), "size({0})", lambda n: "CAST(cardinality({0}) AS INTEGER)" if n.args[0].dtype.kind == "map" else "CAST(len({0}) AS INTEGER)", proof="arrays"),
    Function("sort_array", (1, 2), _sorted, first_type, listed("sort_array({*})"), spell.sort_array, proof="arrays"),
    Function("array_sort", (1, 2), _array_sorted, first_type, listed("array_sort({*})"), spell.array_sort, _comparator, "arrays", _two_elements),
    Function("slice", (3, 3), _sliced, first_type, "slice({0}, {1}, {2})", spell.SLICE, proof="arrays"),
    Function("flatten", (1, 1), _flattened, _element_type, "flatten({0})", spell.flatten, proof="arrays"),
    Function("array_concat", (1, 1 << 20), rule.concatenated, first_type, listed("concat({*})"), spell.concat, proof="arrays"),
    Function("array_reverse", (1, 1), rule.first_array, first_type, "reverse({0})", "list_reverse({0})", proof="arrays"),
    Function("arrays_zip", (0, 1 << 20), _zipped, _zipped_type, _spark_zip, spell.arrays_zip, _refuse_names, "arrays"),
    Function("sequence", (2, 3), _sequence, _array_type, listed("sequence({*})"), _sequence_text, refuse_sequence, "arrays"),
    Function("transform", (2, 2), _transformed, _lambda_result, "transform({0}, {1})", "list_transform({0}, {1})", proof="lambdas", lambda_types=_element_and_index),
    Function("filter", (2, 2), rule.predicate(1), first_type, "filter({0}, {1})", "list_filter({0}, {1})", proof="lambdas", lambda_types=_element_and_index),
    Function("exists", (2, 2), rule.predicate(1), fixed(BOOLEAN), "exists({0}, {1})", spell.EXISTS, proof="lambdas", lambda_types=_one_element),
    Function("forall", (2, 2), rule.predicate(1), fixed(BOOLEAN), "forall({0}, {1})", spell.FORALL, proof="lambdas", lambda_types=_one_element),
    Function("aggregate", (3, 4), _folded, last_type, listed("aggregate({*})"), spell.aggregate, proof="lambdas", lambda_types=_accumulator),
    Function("zip_with", (3, 3), _zip_lambda, _lambda_result, "zip_with({0}, {1}, {2})", spell.ZIP_WITH, proof="lambdas", lambda_types=_both_elements),
)  # fmt: skip
