"""How Spark casts the arguments of functions, and what type they give.

In: typed arguments. Out: coerced arguments, or the result type. Source: Spark's `AnsiTypeCoercion`,
`DecimalPrecision` and the `dataType` of its expressions.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.coercion import (
    as_date,
    as_decimal_operand,
    as_double,
    as_int,
    as_string,
    as_timestamp_like,
    cast_literal,
    comparable,
    unified,
)
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import Expression, Literal
from planner.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    STRING,
    DataType,
    adjusted_decimal,
    bounded_decimal,
    common_type,
)

Args = tuple[Expression, ...]


def unchanged(args: Args) -> Args:
    """Arguments of any type, as they are."""
    return args


def strings(args: Args) -> Args:
    """Arguments read as strings."""
    return tuple(as_string(a) for a in args)


def string_ints(args: Args) -> Args:
    """A string, then whole numbers."""
    return (as_string(args[0]), *(as_int(a) for a in args[1:]))


def string_int_string(args: Args) -> Args:
    """A string, a whole number, strings."""
    return (as_string(args[0]), as_int(args[1]), *(as_string(a) for a in args[2:]))


def dates(args: Args) -> Args:
    """Arguments read as dates."""
    return tuple(as_date(a) for a in args)


def replacement(args: Args) -> Args:
    """Strings; what REPLACE puts in is nothing where it is left out."""
    return (*strings(args), Literal(STRING, "")) if len(args) == 2 else strings(args)


def date_int(args: Args) -> Args:
    """A date and a whole number of at most 32 bits."""
    if args[1].dtype.kind not in ("tinyint", "smallint", "int", "void"):
        raise UnsupportedSqlError(f"a date is moved by a {args[1].dtype}")
    return (as_date(args[0]), as_int(args[1]))


def times(args: Args) -> Args:
    """Dates or timestamps, as they are."""
    return tuple(as_timestamp_like(a) for a in args)


def doubles(args: Args) -> Args:
    """Arguments read as doubles."""
    return tuple(as_double(a) for a in args)


def booleans(args: Args) -> Args:
    """Arguments that must be booleans."""
    for arg in args:
        if arg.dtype not in (BOOLEAN, NULL):
            raise AnalysisError(f"expected a boolean, found {arg.dtype}")
    return tuple(cast_literal(a, BOOLEAN) for a in args)


def comparison(args: Args) -> Args:
    """Two operands in the type in which Spark compares them."""
    return comparable(args[0], args[1])


def value_and_comparison(args: Args) -> Args:
    """Operands of NULLIF: its value keeps its type, so a widened one is compared beside it."""
    left, right = comparable(args[0], args[1])
    return (left, right) if left == args[0] else (args[0], left, right)


def membership(args: Args) -> Args:
    """Operands of IN in one type."""
    return unified(args, "IN")


def unified_for(what: str) -> Callable[[Args], Args]:
    """A rule that brings all operands of `what` to their widest type."""
    return lambda args: unified(args, what)


def case_branches(args: Args) -> Args:
    """Conditions as booleans, values in their widest type."""
    conditions = booleans(args[0:-1:2])
    values = unified((*args[1::2], args[-1]), "CASE")
    pairs = (x for pair in zip(conditions, values[:-1], strict=True) for x in pair)
    return (*pairs, values[-1])


def arithmetic(args: Args) -> Args:
    """Operands of `+ - * %`: one type, except that decimals keep their own."""
    left, right = args
    for side in (left, right):
        if side.dtype == STRING:
            raise UnsupportedSqlError("arithmetic on a string")
        if side.dtype.is_datetime:
            raise UnsupportedSqlError(f"arithmetic on {left.dtype} and {right.dtype}")
        if not (side.dtype.is_numeric or side.dtype == NULL):
            raise AnalysisError(f"arithmetic on {left.dtype} and {right.dtype}")
    if left.dtype.is_floating or right.dtype.is_floating:
        target = common_type(left.dtype, right.dtype) or DOUBLE
        return cast_literal(left, target), cast_literal(right, target)
    if left.dtype.is_decimal or right.dtype.is_decimal:
        if NULL in (left.dtype, right.dtype):
            return unified(args, "arithmetic")
        return as_decimal_operand(left), as_decimal_operand(right)
    return unified(args, "arithmetic")


def division(args: Args) -> Args:
    """Operands of `/`: decimals or doubles."""
    left, right = arithmetic(args)
    if left.dtype.is_decimal:
        return left, right
    return cast_literal(left, DOUBLE), cast_literal(right, DOUBLE)


def integral_division(args: Args) -> Args:
    """Operands of DIV as BIGINT."""
    left, right = arithmetic(args)
    if left.dtype.is_decimal or left.dtype.is_floating:
        raise UnsupportedSqlError("DIV of decimals")
    return cast_literal(left, BIGINT), cast_literal(right, BIGINT)


def numeric(args: Args) -> Args:
    """One number, as it is."""
    if args[0].dtype == STRING:
        raise UnsupportedSqlError("arithmetic on a string")
    if args[0].dtype == NULL:
        return (cast_literal(args[0], DOUBLE), *args[1:])
    if not args[0].dtype.is_numeric:
        raise AnalysisError(f"expected a number, found {args[0].dtype}")
    return args


def fixed(dtype: DataType) -> Callable[[Args], DataType]:
    """A rule that always gives `dtype`."""
    return lambda _: dtype


def first_type(args: Args) -> DataType:
    """The type of the first argument."""
    return args[0].dtype


def last_type(args: Args) -> DataType:
    """The type of the last argument."""
    return args[-1].dtype


def add_type(args: Args) -> DataType:
    """Result of `+` and `-` (`DecimalPrecision`)."""
    left, right = args[0].dtype, args[1].dtype
    if not left.is_decimal:
        return left
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return adjusted_decimal(digits + scale + 1, scale)


def multiply_type(args: Args) -> DataType:
    """Result of `*`."""
    left, right = args[0].dtype, args[1].dtype
    if not left.is_decimal:
        return left
    return adjusted_decimal(left.precision + right.precision + 1, left.scale + right.scale)


def divide_type(args: Args) -> DataType:
    """Result of `/`."""
    left, right = args[0].dtype, args[1].dtype
    if not left.is_decimal:
        return DOUBLE
    scale = max(6, left.scale + right.precision + 1)
    return adjusted_decimal(left.precision - left.scale + right.scale + scale, scale)


def mod_type(args: Args) -> DataType:
    """Result of `%`."""
    left, right = args[0].dtype, args[1].dtype
    if not left.is_decimal:
        return left
    scale = max(left.scale, right.scale)
    return adjusted_decimal(
        min(left.precision - left.scale, right.precision - right.scale) + scale, scale
    )


def round_type(args: Args) -> DataType:
    """Result of ROUND (`RoundBase.dataType`)."""
    dtype = args[0].dtype
    if not dtype.is_decimal:
        return dtype
    digits = args[1] if len(args) > 1 else Literal(INT, 0)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise UnsupportedSqlError("round to a computed number of digits")
    integral = dtype.precision - dtype.scale + 1
    if digits.value < 0:
        return bounded_decimal(max(integral, 1 - digits.value), 0)
    scale = min(dtype.scale, digits.value)
    return bounded_decimal(integral + scale, scale)


def ceil_type(args: Args) -> DataType:
    """Result of CEIL and FLOOR."""
    dtype = args[0].dtype
    if dtype.is_decimal:
        return bounded_decimal(dtype.precision - dtype.scale + 1, 0)
    return BIGINT
