"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_bits
from stagecoach.planner.functions import spell_decimals as decimals
from stagecoach.planner.functions import spell_numbers as spell
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.plan.coercion import as_bigint, as_double, as_int, as_string, cast_literal
from stagecoach.planner.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    STRING,
    DataType,
    decimal,
    decimal_for,
)


def _formula(name: str, arity: int = 1) -> Function:
    """A function of doubles that is a formula of DuckDB."""
    return Function(
        name, (arity, arity), rule.doubles, rule.fixed(DOUBLE), listed(f"{name}({{*}})"),
        spell.FORMULAS[name], proof="formulas",
    )  # fmt: skip


def _up_or_down(args: Args) -> Args:
    if len(args) == 1:
        return rule.plain_number(args)
    rule.plain_number(args[:1])
    dtype = args[0].dtype
    require_constant(args[1], "the number of digits")
    if not dtype.is_decimal:
        target = decimal(38, 18) if not dtype.is_numeric else _decimal_of(dtype)
        args = (cast_literal(args[0], target), args[1])
    return (args[0], as_int(args[1]))


def _decimal_of(dtype: DataType) -> DataType:
    if dtype.is_floating:
        return decimal(14, 7) if dtype.kind == "float" else decimal(30, 15)
    return decimal_for(dtype)


def _up_or_down_type(args: Args) -> DataType:
    return rule.ceil_type(args) if len(args) == 1 else rule.round_type(args)


def _formatted(args: Args) -> Args:
    number, layout = args
    if not (number.dtype.is_numeric or number.dtype == NULL):
        raise AnalysisError(f"expected a number, found {number.dtype}")
    if layout.dtype not in (INT, STRING, NULL):
        raise AnalysisError(f"expected an int or a string as the format, found {layout.dtype}")
    return rule.numeric((number,))[0], layout if layout.dtype == STRING else as_int(layout)


def _signed(args: Args) -> Args:
    if args[0].dtype.is_interval:
        raise UnsupportedSqlError("the sign of an interval")
    return rule.doubles(args)


def _divided(args: Args) -> Args:
    if args[0].dtype.is_interval:
        raise UnsupportedSqlError("try_divide of an interval")
    return rule.division(args)


def _multiplied(args: Args) -> Args:
    if args[0].dtype.is_interval != args[1].dtype.is_interval:
        raise UnsupportedSqlError("try_multiply of an interval")
    return rule.arithmetic(args)


def _bucket(args: Args) -> Args:
    return (*(as_double(a) for a in args[:3]), as_bigint(args[3]))


def _tried(check: Callable[[Args], Args]) -> Callable[[Args], Args]:
    """The rule for operands of numbers.

    With a string, Spark gives NULL for whatever its operands raise, also for their casts.
    """

    def tried(args: Args) -> Args:
        if STRING in (arg.dtype for arg in args):
            raise UnsupportedSqlError("a try_… function of a string")
        return check(args)

    return tried


FUNCTIONS: tuple[Function, ...] = (
    Function("round", (1, 2), rule.rounded_number, rule.round_type, listed("round({*})"), spell.rounded("up"), spell.refuse_rounded, "rounding"),
    Function("bround", (1, 2), rule.rounded_number, rule.round_type, listed("bround({*})"), spell.rounded("even"), spell.refuse_rounded, "rounding"),
    Function("ceil", (1, 2), _up_or_down, _up_or_down_type, listed("ceil({*})"), spell.up_or_down("ceil"), spell.refuse_up_or_down, "rounding"),
    Function("floor", (1, 2), _up_or_down, _up_or_down_type, listed("floor({*})"), spell.up_or_down("floor"), spell.refuse_up_or_down, "rounding"),
    Function("rint", (1, 1), rule.doubles, rule.fixed(DOUBLE), "rint({0})", spell.RINT, proof="rounding"),
    Function("sign", (1, 1), _signed, rule.fixed(DOUBLE), "sign({0})", spell.SIGN, proof="rounding"),
    Function("pmod", (2, 2), rule.arithmetic, rule.mod_type, "pmod({0}, {1})", spell.pmod, decimals.refuse("pmod"), "division"),
    Function("try_add", (2, 2), _tried(rule.arithmetic), rule.add_type, "try_add({0}, {1})", spell.try_arithmetic("add", "+"), decimals.refuse("add"), "arithmetic"),
    Function("try_subtract", (2, 2), _tried(rule.arithmetic), rule.add_type, "try_subtract({0}, {1})", spell.try_arithmetic("subtract", "-"), decimals.refuse("subtract"), "arithmetic"),
    Function("try_multiply", (2, 2), _tried(_multiplied), rule.multiply_type, "try_multiply({0}, {1})", spell.try_arithmetic("multiply", "*"), proof="arithmetic"),
    Function("try_divide", (2, 2), _tried(_divided), rule.divide_type, "try_divide({0}, {1})", spell.try_divide, decimals.refuse("divide"), "division"),
    Function("try_mod", (2, 2), _tried(rule.arithmetic), rule.mod_type, "try_mod({0}, {1})", spell.try_mod, decimals.refuse("mod"), "division"),
    Function("positive", (1, 1), rule.numeric, rule.first_type, "(+ {0})", "{0}", proof="arithmetic"),
    Function("isnan", (1, 1), rule.floats, rule.fixed(BOOLEAN), "isnan({0})", "coalesce(isnan({0}), false)", proof="rounding"),
    Function("nanvl", (2, 2), rule.one_float_type, rule.first_type, "nanvl({0}, {1})", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END", proof="rounding"),
    _formula("sqrt"), _formula("cbrt"), _formula("exp"), _formula("expm1"), _formula("ln"), _formula("log10"), _formula("log2"), _formula("log1p"), _formula("log", 2), _formula("power", 2),
    _formula("sin"), _formula("cos"), _formula("tan"), _formula("cot"), _formula("sec"), _formula("csc"), _formula("asin"), _formula("acos"), _formula("atan"), _formula("atan2", 2),
    _formula("sinh"), _formula("cosh"), _formula("tanh"), _formula("asinh"), _formula("acosh"), _formula("atanh"), _formula("degrees"), _formula("radians"), _formula("hypot", 2),
    Function("factorial", (1, 1), rule.ints, rule.fixed(BIGINT), "factorial({0})", spell.FACTORIAL, proof="formulas"),
    Function("width_bucket", (4, 4), _bucket, rule.fixed(BIGINT), listed("width_bucket({*})"), spell.WIDTH_BUCKET, proof="formulas"),
    Function("bin", (1, 1), rule.bigints, rule.fixed(STRING), "bin({0})", "bin({0})", proof="bits"),
    Function("conv", (3, 3), lambda a: (as_string(a[0]), as_int(a[1]), as_int(a[2])), rule.fixed(STRING), "conv({0}, {1}, {2})", spell_bits.conv, spell_bits.refuse_conv, "bits"),
    Function("format_number", (2, 2), _formatted, rule.fixed(STRING), "format_number({0}, {1})", spell.format_number, spell.refuse_format_number, "conversions"),
)  # fmt: skip
