"""Type rules for functions of arrays, maps and structs.

A call that Spark accepts only after a cast not known here is refused as unsupported, so Spark
decides itself. Source: the `inputTypes` of Spark's `collectionOperations`, `complexTypeCreator` and
`higherOrderFunctions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stagecoach.planner.errors import AnalysisError, InternalPlanError, UnsupportedSqlError
from stagecoach.planner.plan.coercion import cast_literal
from stagecoach.planner.plan.expressions import Expression, Lambda, Literal
from stagecoach.planner.types import (
    BOOLEAN,
    FLOAT,
    INT,
    NULL,
    STRING,
    DataType,
    Field,
    array_of,
    common_type,
    map_of,
    struct_of,
)

Args = tuple[Expression, ...]


def element(dtype: DataType) -> DataType:
    """The type of an array's elements."""
    return dtype.fields[0].dtype


def has_kind(dtype: DataType, *kinds: str) -> bool:
    """Whether the type is, or has a member, of one of these kinds."""
    return dtype.kind in kinds or any(has_kind(f.dtype, *kinds) for f in dtype.fields)


def expect(expr: Expression, kind: str) -> Expression:
    """An argument that must be an array, a map or a struct.

    Raises:
        AnalysisError: For another type.
        UnsupportedSqlError: For an untyped NULL, of which Spark knows what it means.
    """
    if expr.dtype.kind == kind:
        return expr
    if expr.dtype == NULL:
        raise UnsupportedSqlError(f"an untyped NULL in place of the {kind}")
    raise AnalysisError(f"expected {'an' if kind == 'array' else 'a'} {kind}, found {expr.dtype}")


def orderable(dtype: DataType) -> DataType:
    """The type, if its values can be compared.

    Raises:
        AnalysisError: For a map, or what holds one.
    """
    if has_kind(dtype, "map"):
        raise AnalysisError(f"values of {dtype} cannot be compared")
    return dtype


def tightest(left: DataType, right: DataType) -> DataType:
    """The type of two values that Spark widens without loss (`findTightestCommonType`).

    Raises:
        AnalysisError: Where there is none.
    """
    common = common_type(left, right)
    if left == right or NULL in (left, right):
        return common or left
    if FLOAT in (left, right) and (left.is_integral or right.is_integral):
        return FLOAT
    decimals = has_kind(left, "decimal") or has_kind(right, "decimal")
    holds_whole = left.is_integral or right.is_integral
    if common is not None and (not decimals or (holds_whole and common in (left, right))):
        return common
    if common is not None or STRING in (left, right) or not left.is_atomic:
        raise UnsupportedSqlError(f"mixes {left} and {right}")
    raise AnalysisError(f"mixes {left} and {right}")


def wider(left: DataType, right: DataType) -> DataType:
    """The widest type of two values that are compared, strings apart."""
    common = common_type(left, right)
    if common is None:
        raise UnsupportedSqlError(f"mixes {left} and {right}")
    return common


def first_array(args: Args) -> Args:
    """An array, then anything."""
    return (expect(args[0], "array"), *args[1:])


def first_map(args: Args) -> Args:
    """A map, then anything."""
    return (expect(args[0], "map"), *args[1:])


def arrays(args: Args) -> Args:
    """Arrays of any types."""
    return tuple(expect(a, "array") for a in args)


def comparable_array(args: Args) -> Args:
    """An array whose elements can be compared, then anything."""
    array = expect(args[0], "array")
    orderable(element(array.dtype))
    return (array, *args[1:])


def same_arrays(args: Args) -> Args:
    """Two arrays of one type whose elements can be compared."""
    left, right = arrays(args)
    target = array_of(orderable(tightest(element(left.dtype), element(right.dtype))))
    return cast_literal(left, target), cast_literal(right, target)


def concatenated(args: Args) -> Args:
    """Arrays of one type."""
    target = expect(args[0], "array").dtype
    for arg in args[1:]:
        target = array_of(wider(element(target), element(expect(arg, "array").dtype)))
    return tuple(cast_literal(a, target) for a in args)


def array_and_value(
    rule: Callable[[DataType, DataType], DataType] = tightest,
    *,
    compares: bool = False,
    position: int = 1,
) -> Callable[[Args], Args]:
    """A rule for an array and, at `position`, a value of its element type.

    Args:
        rule: Gives the common type of element and value.
        compares: Whether the value is compared with the elements.
        position: Of the value.
    """

    def coerce(args: Args) -> Args:
        array, value = expect(args[0], "array"), args[position]
        if rule is wider and value.dtype == NULL:
            raise UnsupportedSqlError("an untyped NULL")
        dtype = rule(element(array.dtype), value.dtype)
        if compares:
            orderable(dtype)
        middle = tuple(as_int32(a) for a in args[1:position])
        return (cast_literal(array, array_of(dtype)), *middle, cast_literal(value, dtype))

    return coerce


def as_int32(expr: Expression) -> Expression:
    """A number that must fit INT by its type."""
    if expr.dtype.kind in ("tinyint", "smallint", "int"):
        return cast_literal(expr, INT)
    raise AnalysisError(f"expected an int, found {expr.dtype}")


def castable_int(expr: Expression) -> Expression:
    """A number that is cast to INT."""
    if expr.dtype.is_numeric or expr.dtype == NULL:
        return cast_literal(expr, INT)
    raise UnsupportedSqlError(f"a {expr.dtype} in place of an int")


def literal_of(expr: Expression, dtype: DataType) -> Expression:
    """An argument of exactly this type, or NULL."""
    if expr.dtype not in (dtype, NULL):
        raise UnsupportedSqlError(f"a {expr.dtype} in place of a {dtype}")
    return cast_literal(expr, dtype)


def map_key(args: Args) -> Args:
    """A map and one of its keys, in one type."""
    map_, key = expect(args[0], "map"), args[1]
    target = tightest(map_.dtype.fields[0].dtype, key.dtype)
    return cast_literal(map_, map_of(target, map_.dtype.fields[1].dtype)), cast_literal(key, target)


def map_index(args: Args) -> Args:
    """Operands of `m[k]`: the key is cast to that of the map."""
    map_, key = expect(args[0], "map"), args[1]
    target = map_.dtype.fields[0].dtype
    if target != key.dtype and not (
        key.dtype == NULL or (target.is_numeric and key.dtype.is_numeric)
    ):
        raise UnsupportedSqlError(f"a key of type {key.dtype} in a {map_.dtype}")
    return map_, cast_literal(key, target)


def array_index(args: Args) -> Args:
    """Operands of `a[i]`."""
    array, index = expect(args[0], "array"), args[1]
    if index.dtype == NULL:
        return array, cast_literal(index, INT)
    if not index.dtype.is_integral:
        raise AnalysisError(f"an index of type {index.dtype} in an {array.dtype}")
    return array, index


def element_at(args: Args) -> Args:
    """Operands of ELEMENT_AT: an array and a position, or a map and a key."""
    if args[0].dtype.kind == "map":
        return map_key(args)
    return expect(args[0], "array"), as_int32(args[1])


def element_at_type(args: Args) -> DataType:
    """Result of ELEMENT_AT: an element or a value."""
    return args[0].dtype.fields[-1].dtype


def field_type(args: Args) -> DataType:
    """Result of reading the member that the second argument names."""
    name = args[1].value if isinstance(args[1], Literal) else None
    return next(f.dtype for f in args[0].dtype.fields if f.name == name)


def fields_type(args: Args) -> DataType:
    """Result of reading a member of every element."""
    name = args[1].value if isinstance(args[1], Literal) else None
    return array_of(next(f.dtype for f in element(args[0].dtype).fields if f.name == name))


def entries_type(args: Args) -> DataType:
    """The array of structs that a map is."""
    key, value = args[0].dtype.fields
    return array_of(struct_of((Field("key", key.dtype), Field("value", value.dtype))))


def named_values(args: Args) -> Args:
    """Names and values in turn.

    Raises:
        AnalysisError: For a name that is not a literal.
    """
    if len(args) % 2:
        raise AnalysisError("a name without a value")
    for name in args[::2]:
        if not isinstance(name, Literal) or name.dtype != STRING or name.value is None:
            raise AnalysisError("a name is not a literal string")
    return args


def struct_type(args: Args) -> DataType:
    """Result of NAMED_STRUCT."""
    names = (str(n.value) for n in args[::2] if isinstance(n, Literal))
    return struct_of(tuple(Field(n, v.dtype) for n, v in zip(names, args[1::2], strict=True)))


def predicate(position: int) -> Callable[[Args], Args]:
    """A rule for a lambda at `position` that must give a boolean."""

    def coerce(args: Args) -> Args:
        kind = "map" if args[0].dtype.kind == "map" else "array"
        test = args[position]
        if test.dtype not in (BOOLEAN, NULL):
            raise AnalysisError(f"the lambda must give a boolean, not {test.dtype}")
        return (expect(args[0], kind), *args[1:position], with_body_type(test, BOOLEAN))

    return coerce


def with_body_type(expr: Expression, dtype: DataType) -> Expression:
    """A lambda whose body is cast."""
    if not isinstance(expr, Lambda):
        raise InternalPlanError("a function of a lambda got a plain value")
    return replace(expr, body=cast_literal(expr.body, dtype), dtype=dtype)
