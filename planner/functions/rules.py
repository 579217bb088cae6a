"""Type rules for scalar functions: implicit casts of arguments, and result types.

Source: Spark's `AnsiTypeCoercion`, `DecimalPrecision` and the `dataType` of its expressions.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.plan.coercion import (
    as_bigint,
    as_binary,
    as_boolean,
    as_date,
    as_decimal_operand,
    as_double,
    as_int,
    as_string,
    as_text_or_binary,
    as_timestamp_like,
    cast_literal,
    comparable,
    require_orderable,
    unified,
)
from stagecoach.planner.plan.expressions import Expression, Literal
from stagecoach.planner.types import (
    BIGINT,
    BINARY,
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


def only_strings(args: Args) -> Args:
    """Arguments that must be strings already."""
    for arg in args:
        if arg.dtype not in (STRING, NULL):
            raise AnalysisError(f"expected a string, found {arg.dtype}")
    return strings(args)


def string_ints(args: Args) -> Args:
    """A string, then whole numbers."""
    return (as_string(args[0]), *(as_int(a) for a in args[1:]))


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
    """Arguments that must be booleans, or strings that are read as booleans."""
    return tuple(as_boolean(a) for a in args)


def conditions(args: Args) -> Args:
    """Arguments that must be booleans; strings are not read."""
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
    found = unified(args, "IN")
    require_orderable(found[0].dtype, "IN compares")
    return found


def extremes(what: str) -> Callable[[Args], Args]:
    """A rule for GREATEST and LEAST: operands of one type that has an order."""

    def coerce(args: Args) -> Args:
        found = unified(args, what, promote=False)
        require_orderable(found[0].dtype, f"{what} of")
        return found

    return coerce


def unified_for(what: str) -> Callable[[Args], Args]:
    """A rule that brings all operands of `what` to their widest type."""
    return lambda args: unified(args, what)


def case_branches(args: Args) -> Args:
    """Conditions as booleans, values in their widest type."""
    tests = conditions(args[0:-1:2])
    values = unified((*args[1::2], args[-1]), "CASE")
    pairs = (x for pair in zip(tests, values[:-1], strict=True) for x in pair)
    return (*pairs, values[-1])


def promoted_numbers(args: Args, what: str = "arithmetic") -> Args:
    """Two operands of numeric types: a string becomes what its partner asks for.

    Raises:
        AnalysisError: For other types, and for two strings.
        UnsupportedSqlError: For moments, whose arithmetic is another function.
    """
    left, right = args
    types = (left.dtype, right.dtype)
    if any(t.is_datetime or t.kind == "interval" for t in types):
        raise UnsupportedSqlError(f"{what} on {left.dtype} and {right.dtype}")
    if left.dtype.is_interval and right.dtype.is_interval:
        return unified(args, what)
    if not all(t.is_numeric or t in (NULL, STRING) for t in types) or types == (STRING, STRING):
        raise AnalysisError(f"{what} on {left.dtype} and {right.dtype}")
    if STRING in types:
        other = next(t for t in types if t != STRING)
        if other == NULL:
            raise UnsupportedSqlError(f"{what} on a string and NULL")
        target = BIGINT if other.is_integral else DOUBLE
        return tuple(cast_literal(a, target) for a in args)
    return args


def arithmetic(args: Args) -> Args:
    """Operands of `+ - * %`: one type, except that decimals keep their own."""
    if args[0].dtype.is_interval and args[1].dtype.is_interval:
        return unified(args, "arithmetic")
    left, right = promoted_numbers(args)
    args = (left, right)
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
    """Operands of DIV: decimals, else BIGINT."""
    left, right = arithmetic(args)
    if left.dtype.is_floating:
        raise AnalysisError(f"DIV on {args[0].dtype} and {args[1].dtype}")
    if left.dtype.is_decimal or left.dtype.is_interval:
        return left, right
    return cast_literal(left, BIGINT), cast_literal(right, BIGINT)


def integers(args: Args) -> Args:
    """Two operands of bit operators in one integer type."""
    left, right = unified(promoted_numbers(args, "a bit operator"), "a bit operator")
    if left.dtype == NULL:
        return cast_literal(left, INT), cast_literal(right, INT)
    if not left.dtype.is_integral:
        raise AnalysisError(f"a bit operator on {args[0].dtype} and {args[1].dtype}")
    return left, right


def integer(args: Args) -> Args:
    """One integer, as it is, then whole numbers."""
    dtype = args[0].dtype
    if dtype == NULL:
        return (cast_literal(args[0], INT), *(as_int(a) for a in args[1:]))
    if not dtype.is_integral:
        raise AnalysisError(f"expected a whole number, found {dtype}")
    return (args[0], *(as_int(a) for a in args[1:]))


def shifted(args: Args) -> Args:
    """An INT or BIGINT, and by how many bits it is shifted."""
    base = args[0] if args[0].dtype == BIGINT else as_int(args[0])
    return base, as_int(args[1])


def numeric(args: Args) -> Args:
    """One number, as it is; a string becomes a double."""
    dtype = args[0].dtype
    if dtype in (NULL, STRING):
        return (cast_literal(args[0], DOUBLE), *args[1:])
    if not dtype.is_numeric and not dtype.is_interval:
        raise AnalysisError(f"expected a number, found {dtype}")
    return args


def plain_number(args: Args) -> Args:
    """One number, as it is; a string becomes a double, an interval is none."""
    if args[0].dtype.is_interval:
        raise AnalysisError(f"expected a number, found {args[0].dtype}")
    return numeric(args)


def rounded_number(args: Args) -> Args:
    """A number, then a constant number of digits."""
    digits = (as_int(require_constant(a, "the number of digits")) for a in args[1:])
    return (*plain_number(args[:1]), *digits)


def floats(args: Args) -> Args:
    """Floats as they are, other numbers as doubles."""
    return tuple(a if a.dtype.is_floating else as_double(a) for a in args)


def one_float_type(args: Args) -> Args:
    """Floats where all are, else doubles."""
    found = floats(args)
    if len({a.dtype for a in found}) == 1:
        return found
    return tuple(cast_literal(a, DOUBLE) for a in found)


def bigints(args: Args) -> Args:
    """Arguments read as BIGINT."""
    return tuple(as_bigint(a) for a in args)


def ints(args: Args) -> Args:
    """Arguments read as INT."""
    return tuple(as_int(a) for a in args)


def binaries(args: Args) -> Args:
    """Arguments read as binaries."""
    return tuple(as_binary(a) for a in args)


def binary_ints(args: Args) -> Args:
    """A binary, then whole numbers."""
    return (as_binary(args[0]), *(as_int(a) for a in args[1:]))


def binary_strings(args: Args) -> Args:
    """A binary, then strings."""
    return (as_binary(args[0]), *(as_string(a) for a in args[1:]))


def text_or_binary(args: Args) -> Args:
    """Strings, or binaries where all are; NULL takes the type of the others."""
    known = {a.dtype for a in args if a.dtype != NULL}
    if known == {BINARY}:
        return tuple(cast_literal(a, BINARY) for a in args)
    return tuple(as_string(a) for a in args)


def text_or_binary_ints(args: Args) -> Args:
    """A string or a binary, then whole numbers."""
    return (as_text_or_binary(args[0]), *(as_int(a) for a in args[1:]))


def strings_int(args: Args) -> Args:
    """Two strings, then whole numbers."""
    return (*strings(args[:2]), *(as_int(a) for a in args[2:]))


def strings3_int(args: Args) -> Args:
    """Three strings, then whole numbers."""
    return (*strings(args[:3]), *(as_int(a) for a in args[3:]))


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
    if dtype.is_decimal and not dtype.scale:
        return dtype
    if dtype.is_decimal:
        return bounded_decimal(dtype.precision - dtype.scale + 1, 0)
    return BIGINT
