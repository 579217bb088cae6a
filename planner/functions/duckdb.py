"""Spell Spark's operators for DuckDB, and refuse the arguments for which they differ.

The results were measured; the proofs are in `tests/differential`.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.functions import spell_decimals as decimals
from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.functions.spell_collections import order_key
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.types import DOUBLE, adjusted_decimal


def add(name: str, operator: str) -> Callable[[Call], str]:
    """A rule that spells decimal sums in their result type, so that DuckDB does not narrow them."""

    def spell(node: Call) -> str:
        if not node.dtype.is_decimal:
            return _arithmetic(name, operator, node)
        if _cuts_sum(node):
            return decimals.exact(name)(node)
        t = "{type}"
        return f"CAST(CAST({{0}} AS {t}) {operator} CAST({{1}} AS {t}) AS {t})"

    return spell


def _arithmetic(name: str, operator: str, node: Call) -> str:
    """Arithmetic of whole numbers and of floats.

    DuckDB's optimiser moves constants, but only those of operators: `x * 3 = 4` becomes FALSE, and
    `x + 1 > 0` becomes `x > -1`, neither of which can overflow. Functions of the same meaning stay.
    """
    is_moved = not node.dtype.is_floating and any(not arg.column_ids for arg in node.args)
    return f"{name}({{0}}, {{1}})" if is_moved else f"({{0}} {operator} {{1}})"


def _cuts_sum(node: Call) -> bool:
    """Whether Spark cuts digits of a sum, or an operand may have no room in the result's type."""
    whole = max(a.dtype.precision - a.dtype.scale for a in node.args)
    scale = max(a.dtype.scale for a in node.args)
    return node.dtype.scale != scale or whole > node.dtype.precision - node.dtype.scale


def refuse_add(name: str) -> Callable[[Call], str | None]:
    """A rule that refuses sums of too many digits."""
    return lambda node: decimals.refuse(name)(node) if _cuts_sum(node) else None


def multiply(node: Call) -> str:
    """Product in 128 bits where 64 may overflow."""
    if not node.dtype.is_decimal:
        return _arithmetic("multiply", "*", node)
    left, right = (a.dtype for a in node.args)
    if left.scale + right.scale != node.dtype.scale:
        return decimals.exact("multiply")(node)
    if left.precision + right.precision > 18 and max(left.precision, right.precision) <= 18:
        # NOTE: two operands of up to 18 digits multiply in 64 bits and overflow; 19 digits use 128.
        return f"CAST(CAST({{0}} AS DECIMAL(19,{left.scale})) * {{1}} AS {{type}})"
    return "CAST({0} * {1} AS {type})"


def decimal_to_unscaled(text: str, scale: int) -> str:
    """DuckDB text of a decimal's unscaled HUGEINT; overflow raises."""
    return f"CAST({text} * CAST({10**scale} AS DECIMAL({scale + 1},0)) AS HUGEINT)"


def divide(node: Call) -> str:
    """Division with Spark's zero check; decimals exactly, half up."""
    if node.dtype.is_decimal:
        return decimals.exact("divide")(node)
    return (
        "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN CAST(error('DIVIDE_BY_ZERO') AS {type}) "
        "ELSE {0} / {1} END"
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


def negated(name: str, template: str) -> Callable[[Call], str]:
    """A rule for ABS and minus: Spark rounds what it negates to 34 digits."""

    def spell(node: Call) -> str:
        if node.dtype.precision > 34:
            return decimals.exact(name)(node)
        if name == "negate" and node.dtype.is_integral:
            return "subtract(CAST(0 AS {type}), {0})"  # see `_arithmetic`
        return template

    return spell


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
    text = decimals.decimal_call("divide", (node.args[0].dtype, decimals.COUNT), node.dtype)
    return text.replace("{1}", "CAST(nullif({1}, 0) AS DECIMAL(20,0))")
