"""Spell Spark's operators for DuckDB, and refuse the arguments for which they differ.

The results were measured; the proofs are in `tests/differential`.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.functions.spell_collections import order_key
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.types import DOUBLE, adjusted_decimal


def add(operator: str) -> Callable[[Call], str]:
    """A rule that spells decimal sums in their result type, so that DuckDB does not narrow them."""

    def spell(node: Call) -> str:
        if node.dtype.is_decimal:
            t = "{type}"
            return f"CAST(CAST({{0}} AS {t}) {operator} CAST({{1}} AS {t}) AS {t})"
        return f"({{0}} {operator} {{1}})"

    return spell


def lossy(node: Call) -> str | None:
    """Spark shrinks the scale of results above 38 digits; DuckDB raises instead."""
    left, right = (a.dtype for a in node.args)
    if not node.dtype.is_decimal:
        return None
    exact = (
        left.scale + right.scale if node.function == "multiply" else max(left.scale, right.scale)
    )
    if exact != node.dtype.scale:
        return f"the scale of {node.dtype} is less than exact"
    return None


def multiply(node: Call) -> str:
    """Product in 128 bits where 64 may overflow."""
    if not node.dtype.is_decimal:
        return "({0} * {1})"
    left, right = (a.dtype for a in node.args)
    if left.precision + right.precision > 18 and max(left.precision, right.precision) <= 18:
        # NOTE: two operands of up to 18 digits multiply in 64 bits and overflow; 19 digits use 128.
        return f"CAST(CAST({{0}} AS DECIMAL(19,{left.scale})) * {{1}} AS {{type}})"
    return "CAST({0} * {1} AS {type})"


def decimal_division(numerator: str, denominator: str, shift: int, dtype: str, scale: int) -> str:
    """DuckDB text of an exact, half-up decimal division on unscaled HUGEINTs.

    Overflow of 128 bits raises, and the stage then runs on Spark.

    Args:
        numerator: SQL of the unscaled dividend, a HUGEINT.
        denominator: SQL of the unscaled divisor, a HUGEINT that is not 0.
        shift: Decimal digits to add to the dividend (not negative).
        dtype: DuckDB name of the result type.
        scale: Scale of the result type.
    """
    scaled = f"({numerator} * CAST({10**shift} AS HUGEINT))" if shift else numerator
    magnitude = f"((2 * abs({scaled}) + abs({denominator})) // (2 * abs({denominator})))"
    signed = f"({magnitude} * CAST(sign({scaled}) * sign({denominator}) AS HUGEINT))"
    return unscaled_to_decimal(signed, dtype, scale)


def unscaled_to_decimal(text: str, dtype: str, scale: int) -> str:
    """DuckDB text that puts the point into an unscaled HUGEINT, exactly or with an error."""
    if scale == 0:
        return f"CAST({text} AS {dtype})"
    unit = "0." + "0" * (scale - 1) + "1"
    return (
        f"CAST(CAST({text} AS DECIMAL(38,0)) * CAST({unit} AS DECIMAL({scale},{scale})) AS {dtype})"
    )


def decimal_to_unscaled(text: str, scale: int) -> str:
    """DuckDB text of a decimal's unscaled HUGEINT; overflow raises."""
    return f"CAST({text} * CAST({10**scale} AS DECIMAL({scale + 1},0)) AS HUGEINT)"


def divide(node: Call) -> str:
    """Division with Spark's zero check; decimals exactly, half up."""
    guard = (
        "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN CAST(error('DIVIDE_BY_ZERO') AS {type}) ELSE "
    )
    if not node.dtype.is_decimal:
        return guard + "{0} / {1} END"
    left, right = (a.dtype for a in node.args)
    shift = node.dtype.scale - left.scale + right.scale
    body = decimal_division(
        decimal_to_unscaled("{0}", left.scale),
        decimal_to_unscaled("nullif({1}, 0)", right.scale),
        shift,
        "{type}",
        node.dtype.scale,
    )
    return guard + body + " END"


def refuse_divide(node: Call) -> str | None:
    """Only divisions that keep the digits of the dividend."""
    if node.dtype.is_decimal:
        left, right = (a.dtype for a in node.args)
        if node.dtype.scale - left.scale + right.scale < 0:
            return "the division drops digits of its dividend"
    return None


def mod(node: Call) -> str:
    """Remainder with Spark's zero check; -1 apart because the smallest number overflows."""
    zero = "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN CAST(error('REMAINDER_BY_ZERO') AS {type}) "
    if node.dtype.is_integral:
        minus_one = "WHEN {1} = -1 THEN CAST(0 * {0} AS {type}) "
        return zero + minus_one + "ELSE CAST({0} % nullif({1}, 0) AS {type}) END"
    return zero + "ELSE CAST({0} % nullif({1}, 0) AS {type}) END"


def int_divide(_: Call) -> str:
    """DIV with Spark's zero check."""
    return (
        "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN CAST(error('DIVIDE_BY_ZERO') AS BIGINT) "
        "ELSE CAST({0} // nullif({1}, 0) AS BIGINT) END"
    )


def substring(node: Call) -> str:
    """SUBSTRING with a literal start; 0 means 1."""
    start = node.args[1]
    if not isinstance(start, Literal) or not isinstance(start.value, int):
        return "substring({0}, {1})"
    position = "1" if start.value == 0 else "{1}"
    if len(node.args) == 2:
        return f"substring({{0}}, {position})"
    return f"substring({{0}}, {position}, CASE WHEN {{2}} < 0 THEN 0 ELSE {{2}} END)"


def only(*kinds: str) -> Callable[[Call], str | None]:
    """A rule that refuses arguments of other types."""

    def refuse(node: Call) -> str | None:
        wrong = next((a.dtype for a in node.args if a.dtype.kind not in kinds), None)
        return None if wrong is None else f"{node.function} of {wrong} is not proven"

    return refuse


def without_maps(node: Call) -> str | None:
    """Only values that can be compared: NULL members equal each other in both engines."""
    wrong = next((a.dtype for a in node.args if has_kind(a.dtype, "map")), None)
    return None if wrong is None else f"{node.function} of {wrong} is not proven"


def compare(operator: str) -> Callable[[Call], str]:
    """A rule that compares arrays and structs in Spark's order of their NULL members."""

    def spell(node: Call) -> str:
        if operator in ("=", "<>"):
            return f"({{0}} {operator} {{1}})"
        left, right = (order_key(f"{{{i}}}", a.dtype) for i, a in enumerate(node.args))
        return f"({left} {operator} {right})"

    return spell


def refuse_comparison(node: Call) -> str | None:
    """DuckDB's optimiser moves constants: x + 1 > 0 becomes x > -1, which cannot overflow."""
    for side, other in (node.args, node.args[::-1]):
        if isinstance(side, Call) and side.function in ("add", "subtract", "multiply"):
            constant = any(not arg.column_ids for arg in side.args)
            whole = side.dtype.is_integral or side.dtype.is_interval
            if whole and constant and not other.column_ids:
                return "comparing a sum with constants may hide an overflow"
    return without_maps(node)


def refuse_abs(node: Call) -> str | None:
    """Spark's ABS rounds decimals to 34 digits (Scala's `BigDecimal.abs`)."""
    dtype = node.dtype
    return f"abs of {dtype} is not proven" if dtype.precision > 34 else None


def spark_average(node: Call) -> str:
    """The end of AVG on Spark: sum divided by count."""
    if not node.dtype.is_decimal:
        return "({0} / {1})" if node.dtype == DOUBLE else "{0}"
    total = node.args[0].dtype
    # Spark's own type of the quotient; rounding it once more is right for up to 10^12 rows.
    scale = max(6, total.scale + _COUNT_DIGITS + 1)
    quotient = adjusted_decimal(total.precision - total.scale + scale, scale)
    exact = quotient.scale - node.dtype.scale >= _SPARE_DIGITS
    value = "CAST({0} / {1} AS {type})" if exact else _long_division(node)
    return f"CASE WHEN {{1}} = 0 THEN NULL ELSE {value} END"


_COUNT_DIGITS = 20  # of a bigint as a decimal
_SPARE_DIGITS = 12
_CHUNKS, _WIDTH = 5, 9


def _long_division(node: Call) -> str:
    """Spark text of an exact, half-up quotient, whose digits Spark's `/` would cut.

    The digits of the dividend are divided in chunks of nine, each with the remainder before it.
    """
    scale = node.dtype.scale
    digits = "replace(replace(CAST({0} AS STRING), '.', ''), '-', '')"
    shift = "0" * (scale - node.args[0].dtype.scale)
    padded = f"lpad(concat({digits}, '{shift}'), {_CHUNKS * _WIDTH}, '0')"
    chunks = ", ".join(
        f"CAST(substr({padded}, {i * _WIDTH + 1}, {_WIDTH}) AS BIGINT)" for i in range(_CHUNKS)
    )
    step = f"(a.r * {10**_WIDTH} + c)"
    next_digits = f"concat(a.q, lpad(CAST({step} div {{1}} AS STRING), {_WIDTH}, '0'))"
    state = f"named_struct('q', {next_digits}, 'r', CAST({step} % {{1}} AS DECIMAL(20,0)))"
    start = "named_struct('q', '', 'r', CAST(0 AS DECIMAL(20,0)))"
    up = "CASE WHEN a.r * 2 >= {1} THEN 1 ELSE 0 END"
    rounded = f"lpad(CAST(CAST(a.q AS DECIMAL(38,0)) + {up} AS STRING), 39, '0')"
    whole = f"substr({rounded}, 1, length({rounded}) - {scale})"
    sign = "CASE WHEN {0} < 0 THEN '-' ELSE '' END"
    text = f"concat({sign}, {whole}, '.', right({rounded}, {scale}))"
    return f"CAST(aggregate(array({chunks}), {start}, (a, c) -> {state}, a -> {text}) AS {{type}})"


def average(node: Call) -> str:
    """The end of AVG on DuckDB: sum divided by count, decimals half up."""
    if not node.dtype.is_decimal:
        return "CASE WHEN {1} = 0 THEN NULL ELSE {0} / {1} END"
    shift = node.dtype.scale - node.args[0].dtype.scale
    body = decimal_division(
        decimal_to_unscaled("{0}", node.args[0].dtype.scale),
        "CAST(nullif({1}, 0) AS HUGEINT)",
        shift,
        "{type}",
        node.dtype.scale,
    )
    return f"CASE WHEN {{1}} = 0 THEN NULL ELSE {body} END"
