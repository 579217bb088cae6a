"""Build literals in their canonical form, and casts."""

from __future__ import annotations

from decimal import Context, Decimal

from sqlglot import exp

from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar, handles
from stagecoach.planner.analysis.scalars.intervals import is_interval, negated
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.coercion import (
    cast_literal,
    date_text,
    decimal_literal_type,
    integer_literal_type,
    is_moment,
    is_special_time,
    require_castable,
)
from stagecoach.planner.plan.expressions import (
    Cast,
    Expression,
    Literal,
)
from stagecoach.planner.syntax.constant_ranges import SUFFIXES
from stagecoach.planner.syntax.parse import StagecoachSpark
from stagecoach.planner.syntax.spark_syntax import UnaryPlus
from stagecoach.planner.syntax.syntax_conditions import SPARK_TYPES
from stagecoach.planner.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    MAX_PRECISION,
    NULL,
    STRING,
    parse_type,
)

# What has no counterpart of the other sign: Spark raises.
_SMALLEST = {"tinyint": -(2**7), "smallint": -(2**15), "int": -(2**31), "bigint": -(2**63)}


@handles(exp.Literal)
def _literal(node: exp.Literal, names: Names) -> Expression:
    del names
    if node.is_string:
        return Literal(STRING, node.this)
    text = str(node.this)
    if "e" in text.lower():
        return Literal(DOUBLE, float(text))
    if "." in text:
        return Literal(decimal_literal_type(text), _plain(Decimal(text)))
    value = int(text)
    dtype = integer_literal_type(value)
    return Literal(dtype, str(value) if dtype.is_decimal else value)


def _plain(value: Decimal) -> str:
    return format(value, "f")


@handles(exp.Neg)
def _negate(node: exp.Neg, names: Names) -> Expression:
    signed = _signed_integer(node.this)
    if signed is not None:
        return signed
    inner = build_scalar(node.this, names)
    if is_interval(inner.dtype):
        return negated(inner)
    if isinstance(inner, Literal) and inner.value is not None and inner.dtype.is_numeric:
        return _negated(inner)
    return make_call("negate", inner)


def _signed_integer(node: exp.Expr) -> Literal | None:
    """The number of digits that a sign precedes: to Spark both are one literal."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdecimal():
        return None
    value = -int(node.this)
    dtype = integer_literal_type(value)
    return None if dtype.is_decimal else Literal(dtype, value)


def _negated(inner: Literal) -> Expression:
    if inner.dtype.is_decimal:
        # Python's own minus rounds to 28 digits. Zero has no sign.
        value = Context(prec=MAX_PRECISION).minus(Decimal(str(inner.value)))
        return Literal(inner.dtype, _plain(value))
    if inner.value == _SMALLEST.get(inner.dtype.kind):
        return make_call("negate", inner)
    assert isinstance(inner.value, int | float)
    return Literal(inner.dtype, -inner.value)


@handles(UnaryPlus)
def _plus(node: UnaryPlus, names: Names) -> Expression:
    inner = build_scalar(node.this, names)
    is_number = isinstance(inner, Literal) and inner.dtype.is_numeric
    return inner if is_number or is_interval(inner.dtype) else make_call("positive", inner)


@handles(exp.Cast, exp.TryCast)
def _cast(node: exp.Cast, names: Names) -> Expression:
    arg = build_scalar(node.this, names)
    if any(part.this == exp.DType.TIME for part in node.to.find_all(exp.DataType)):
        raise UnsupportedSqlError("values of type TIME")  # sqlglot would write TIMESTAMP
    _check_type(node.to)
    dtype = parse_type(node.to.sql(dialect=StagecoachSpark))
    is_typed = isinstance(arg, Literal) and dtype.is_datetime and node.meta.get("typed")
    if is_typed and not is_moment(str(getattr(arg, "value", ""))):
        # Spark refuses it before it runs anything, unless it reads more texts than we do.
        raise UnsupportedSqlError(f"a literal {dtype} that only Spark can judge")
    if dtype.is_datetime and is_special_time(arg):
        raise UnsupportedSqlError(f"the {dtype} '{getattr(arg, 'value', '')}'")
    require_castable(arg.dtype, dtype)
    safe = isinstance(node, exp.TryCast)
    if arg == Literal(STRING, arg.value if isinstance(arg, Literal) else None) and dtype == DATE:
        return _date_literal(arg, safe)
    if safe:
        return Cast(dtype, arg, safe=True)
    return cast_literal(arg, dtype)


_SIZED = ("char", "character", "varchar")
_UNSIZED = ("string", "timestamp", "timestamp_ltz", "timestamp_ntz")


def _check_type(to: exp.Expr) -> None:
    """Refuse a type that sqlglot knows and Spark does not.

    Raises:
        AnalysisError: Naming it.
        UnsupportedSqlError: For a length or precision, but for microseconds, which is the default.
    """
    for part in to.find_all(exp.DataType):
        word = str(part.meta.get("written", ""))  # none in the type of a literal such as 1.5BD
        if word.isidentifier() and word.lower() not in SPARK_TYPES | SUFFIXES:
            raise AnalysisError(f"Spark has no type '{word}'", condition="UNSUPPORTED_DATATYPE")
        sizes = [size.name for size in part.find_all(exp.DataTypeParam) if size.parent is part]
        if word.lower() in _UNSIZED and sizes and (word.lower() == "string" or sizes != ["6"]):
            raise UnsupportedSqlError(f"the type {word}({', '.join(sizes)})")
        if word.lower() in _SIZED and not part.expressions:
            raise AnalysisError(
                f"the type {word} needs a length, such as {word}(10)",
                condition="DATATYPE_MISSING_SIZE",
            )


def _date_literal(arg: Expression, safe: bool) -> Expression:
    text = date_text(str(arg.value)) if isinstance(arg, Literal) else None
    if text is None and not safe:
        # Spark refuses a DATE'…' that is none before it runs anything, and reads more years.
        raise UnsupportedSqlError("a date literal that only Spark can judge")
    return Literal(DATE, text) if text else Cast(DATE, arg, safe=safe)


@handles(exp.Null)
def _null(node: exp.Null, names: Names) -> Expression:
    del node, names
    return Literal(NULL, None)


@handles(exp.Boolean)
def _boolean(node: exp.Boolean, names: Names) -> Expression:
    del names
    return Literal(BOOLEAN, bool(node.this))


@handles(exp.HexString)
def _hex_string(node: exp.HexString, names: Names) -> Expression:
    del names
    # A binary literal of Spark; sqlglot keeps its digits.
    return make_call("unhex", Literal(STRING, str(node.this)))
