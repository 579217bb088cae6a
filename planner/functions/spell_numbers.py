"""Spell Spark's numeric functions for DuckDB.

Exponentials, logarithms, powers, roots and arcs are computed as in Java, by functions that the
worker registers (`java_…`). Sine, cosine and tangent come from another math library than Java's and
may differ in the last bits (at most 1e-12 of the value).
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.functions import spell_decimals as decimals
from stagecoach.planner.functions.duckdb import decimal_to_unscaled
from stagecoach.planner.functions.spell_strings import int_of
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.types import DataType

_NAN = "CAST('nan' AS DOUBLE)"


def zero_guard(node: Call, body: str, error: str = "DIVIDE_BY_ZERO") -> str:
    """`body`, but an error for a divisor of 0."""
    return (
        f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN CAST(error('{error}') AS {{type}}) "
        f"ELSE {body} END"
    )


def null_guard(body: str) -> str:
    """`body`, but NULL for a divisor of 0."""
    return f"CASE WHEN {{1}} = 0 THEN NULL ELSE {body} END"


# ---------------------------------------------------------------- division


def int_divide(node: Call) -> str:
    """DIV with Spark's zero check: digits behind the point are cut off."""
    types = node.args[0].dtype, node.args[1].dtype
    if types[0].is_decimal:
        return f"CAST({decimals.decimal_call('div', types, decimals.BIGINT_DIGITS)} AS BIGINT)"
    return zero_guard(node, "CAST({0} // nullif({1}, 0) AS BIGINT)")


def remainder(node: Call) -> str:
    """The remainder with the sign of the dividend, for a divisor that is not 0."""
    if node.dtype.is_integral:
        # -1 apart because the smallest number overflows.
        return (
            "CASE WHEN {1} = -1 THEN CAST(0 * {0} AS {type}) "
            "ELSE CAST({0} % nullif({1}, 0) AS {type}) END"
        )
    if node.dtype.is_decimal:
        wide = f"DECIMAL(38,{node.dtype.scale})"
        return f"CAST(CAST({{0}} AS {wide}) % nullif(CAST({{1}} AS {wide}), 0) AS {{type}})"
    return "({0} % {1})"


def _fits_one_type(node: Call) -> bool:
    """Whether one decimal type of 38 digits has room for both operands."""
    types = [a.dtype for a in node.args]
    return max(t.precision - t.scale for t in types) + max(t.scale for t in types) <= 38


def mod(node: Call) -> str:
    """`%` with Spark's zero check."""
    if node.dtype.is_decimal and not _fits_one_type(node):
        return decimals.exact("mod")(node)
    return zero_guard(node, remainder(node), "REMAINDER_BY_ZERO")


def try_mod(node: Call) -> str:
    """TRY_MOD: NULL for a divisor of 0."""
    if node.dtype.is_decimal and not _fits_one_type(node):
        return decimals.exact("try_mod")(node)
    return null_guard(remainder(node))


def pmod(node: Call) -> str:
    """PMOD: a negative remainder gets the divisor once more."""
    if node.dtype.is_decimal:
        return decimals.exact("pmod")(node)
    rest = remainder(node)
    if node.dtype.is_integral:
        again = f"(CAST(({rest}) AS HUGEINT) + {{1}}) % nullif({{1}}, 0)"
        return zero_guard(
            node,
            f"CASE WHEN ({rest}) < 0 THEN CAST({again} AS {{type}}) ELSE {rest} END",
            "REMAINDER_BY_ZERO",
        )
    return zero_guard(
        node,
        f"CASE WHEN ({rest}) < 0 THEN CAST((({rest}) + {{1}}) % nullif({{1}}, 0) AS {{type}}) "
        f"ELSE {rest} END",
        "REMAINDER_BY_ZERO",
    )


def try_divide(node: Call) -> str:
    """TRY_DIVIDE: NULL for a divisor of 0."""
    return decimals.exact("try_divide")(node) if node.dtype.is_decimal else null_guard("{0} / {1}")


def try_arithmetic(name: str, operator: str) -> Callable[[Call], str]:
    """TRY_ADD and its kin: what overflows is NULL."""

    def spell(node: Call) -> str:
        if node.dtype.is_floating:
            return f"({{0}} {operator} {{1}})"
        if node.dtype.is_decimal:
            return decimals.exact(f"try_{name}")(node)
        return f"TRY_CAST(CAST({{0}} AS HUGEINT) {operator} CAST({{1}} AS HUGEINT) AS {{type}})"

    return spell


# ---------------------------------------------------------------- rounding


def _decimal_rounded(node: Call, digits: int, mode: str) -> str:
    """A decimal rounded `up`, `even`, `ceil` or `floor`."""
    dtype = node.args[0].dtype
    if digits >= dtype.scale:
        return "CAST({0} AS {type})"
    if digits >= 0:
        operation = {"up": "round", "even": "bround"}.get(mode, mode)
        return decimals.decimal_call(operation, (dtype,), node.dtype)
    unscaled = decimal_to_unscaled("{0}", dtype.scale)
    unit = f"CAST({10 ** (dtype.scale - digits)} AS HUGEINT)"
    whole, rest = f"(abs({unscaled}) // {unit})", f"(abs({unscaled}) % {unit})"
    up = {
        "up": f"2 * {rest} >= {unit}",
        "even": f"2 * {rest} > {unit} OR (2 * {rest} = {unit} AND {whole} % 2 = 1)",
        "ceil": f"{rest} > 0 AND {{0}} > 0",
        "floor": f"{rest} > 0 AND {{0}} < 0",
    }[mode]
    magnitude = f"(({whole} + CASE WHEN {up} THEN 1 ELSE 0 END) * CAST({10**-digits} AS HUGEINT))"
    return f"CAST(({magnitude} * CASE WHEN {{0}} < 0 THEN -1 ELSE 1 END) AS {{type}})"


def _refuse_left(dtype: DataType, digits: int) -> str | None:
    """Left of the point, DuckDB rounds a decimal in 128 bits."""
    wide = dtype.precision + dtype.scale > 37 or dtype.scale - digits > 36
    if dtype.is_decimal and digits < 0 and wide:
        return f"rounding {dtype} left of the point is not proven"
    return None


def _integer_rounded(digits: int, mode: str) -> str:
    if digits >= 0:
        return "{0}"
    unit = f"CAST({10**-digits} AS HUGEINT)"
    size = "abs(CAST({0} AS HUGEINT))"
    whole, rest = f"({size} // {unit})", f"({size} % {unit})"
    up = f"2 * {rest} >= {unit}"
    if mode == "even":
        up = f"2 * {rest} > {unit} OR (2 * {rest} = {unit} AND {whole} % 2 = 1)"
    magnitude = f"({whole} + CASE WHEN {up} THEN 1 ELSE 0 END) * {unit}"
    return f"CAST({magnitude} * CASE WHEN {{0}} < 0 THEN -1 ELSE 1 END AS {{type}})"


def _double_rounded(digits: int, mode: str) -> str:
    """A double rounded in its shortest decimal text, as Java does.

    A double from 10 to the (20 - digits) on has no digits there; below, 18 more than are asked for
    hold its 17 significant ones, so that nothing is rounded twice.
    """
    exact = f"CAST(CAST({{0}} AS VARCHAR) AS DECIMAL(38,{digits + 18}))"
    function = "round" if mode == "up" else "round_even"
    rounded = f"CAST(CAST({function}({exact}, {digits}) AS VARCHAR) AS DOUBLE)"
    return f"CASE WHEN abs({{0}}) < CAST('1e{19 - digits}' AS DOUBLE) THEN {rounded} ELSE {{0}} END"


def rounded(mode: str) -> Callable[[Call], str]:
    """ROUND (`up`: half away from 0) and BROUND (`even`: half to even)."""

    def spell(node: Call) -> str:
        dtype = node.args[0].dtype
        digits = (int_of(node.args[1]) or 0) if len(node.args) > 1 else 0
        if dtype.is_decimal and dtype.precision <= 18 and mode == "up" and digits >= 0:
            return f"CAST(round({{0}}, {digits}) AS {{type}})"
        if dtype.is_decimal:
            return _decimal_rounded(node, digits, mode)
        if dtype.is_integral:
            return _integer_rounded(digits, mode)
        return _double_rounded(digits, mode)

    return spell


def refuse_rounded(node: Call) -> str | None:
    """Only a literal number of digits; floats right of the point."""
    digits = int_of(node.args[1]) if len(node.args) > 1 else 0
    dtype = node.args[0].dtype
    if digits is None:
        return "round to a computed number of digits"
    if dtype.kind == "float":
        return "rounding of floats is not proven"
    if dtype.is_floating and not 0 <= digits <= 10:
        return "rounding of doubles left of the point is not proven"
    if digits < -36:
        return "rounding to so many digits is not proven"
    return _refuse_left(dtype, digits)


def up_or_down(name: str) -> Callable[[Call], str]:
    """CEIL and FLOOR."""

    def spell(node: Call) -> str:
        dtype = node.args[0].dtype
        if len(node.args) == 2:
            return _decimal_rounded(node, int_of(node.args[1]) or 0, name)
        if dtype.is_decimal:
            return f"CAST({name}({{0}}) AS {{type}})"
        if dtype.is_integral:
            return "CAST({0} AS BIGINT)"
        return f"CASE WHEN isnan({{0}}) THEN 0 ELSE CAST({name}({{0}}) AS BIGINT) END"

    return spell


def refuse_up_or_down(node: Call) -> str | None:
    """A scale is only proven for decimals."""
    if len(node.args) == 2:
        digits = int_of(node.args[1])
        if digits is None or not node.args[0].dtype.is_decimal:
            return f"{node.function} to a scale is not proven"
        return _refuse_left(node.args[0].dtype, digits)
    return None


# Adding and taking away 2 to the 52 leaves no room for fractions, and rounds half to even.
RINT = (
    "CASE WHEN {0} = 0 OR abs({0}) >= 4503599627370496 THEN {0} "
    "WHEN {0} < 0 THEN -((4503599627370496.0::DOUBLE - {0}) - 4503599627370496.0::DOUBLE) "
    "ELSE ({0} + 4503599627370496.0::DOUBLE) - 4503599627370496.0::DOUBLE END"
)
SIGN = (
    "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} WHEN {0} > 0 THEN CAST(1 AS DOUBLE) "
    "WHEN {0} < 0 THEN CAST(-1 AS DOUBLE) END"
)

# ---------------------------------------------------------------- transcendental functions


def within(condition: str, body: str, other: str = _NAN) -> str:
    """`body` where the condition holds, else NaN; NULL stays NULL."""
    return f"CASE WHEN {condition} OR {{0}} IS NULL THEN {body} ELSE {other} END"


_FINITE = "NOT isinf({0})"
POSITIVE = "{0} > 0"
FORMULAS: dict[str, str] = {
    "sqrt": within("{0} >= 0", "sqrt({0})"),
    "cbrt": "java_cbrt({0})",
    "exp": "java_exp({0})",
    "expm1": "java_expm1({0})",
    "ln": f"CASE WHEN {POSITIVE} THEN java_log({{0}}) END",
    "log10": f"CASE WHEN {POSITIVE} THEN java_log10({{0}}) END",
    "log2": f"CASE WHEN {POSITIVE} THEN java_log({{0}}) / CAST('0.6931471805599453' AS DOUBLE) END",
    "log1p": "CASE WHEN {0} > -1 THEN java_log1p({0}) END",
    "log": "CASE WHEN {0} > 0 AND {1} > 0 THEN java_log({1}) / java_log({0}) END",
    "sin": within(_FINITE, "sin({0})"),
    "cos": within(_FINITE, "cos({0})"),
    "tan": within(_FINITE, "tan({0})"),
    "cot": within(_FINITE, "1 / tan({0})"),
    "sec": within(_FINITE, "1 / cos({0})"),
    "csc": within(_FINITE, "1 / sin({0})"),
    "asin": "java_asin({0})",
    "acos": "java_acos({0})",
    "atan": "java_atan({0})",
    "atan2": "java_atan2({0} + 0.0::DOUBLE, {1} + 0.0::DOUBLE)",
    "sinh": "java_sinh({0})",
    "cosh": "java_cosh({0})",
    "tanh": "java_tanh({0})",
    "asinh": "java_asinh({0})",
    "acosh": "java_acosh({0})",
    "atanh": "java_atanh({0})",
    "degrees": "({0} * CAST('57.29577951308232' AS DOUBLE))",
    "radians": "({0} * CAST('0.017453292519943295' AS DOUBLE))",
    "hypot": "java_hypot({0}, {1})",
    "power": "java_pow({0}, {1})",
}
"""Functions of doubles; `java_…` are those of `stagecoach.infra.engines.duckdb.java_functions`."""

APPROXIMATE = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
"""Functions that Java's machine computes by code of the processor at hand: the last bits differ."""

FACTORIAL = (
    "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial(CASE WHEN {0} BETWEEN 0 AND 20 THEN {0} "
    "ELSE 0 END) AS BIGINT) END"
)
WIDTH_BUCKET = (
    "CASE WHEN {3} <= 0 OR {3} = 9223372036854775807 OR isnan({0}) OR {1} = {2} "
    "OR NOT isfinite({1}) OR NOT isfinite({2}) "
    "OR {0} IS NULL OR {1} IS NULL OR {2} IS NULL OR {3} IS NULL THEN NULL "
    "WHEN {1} < {2} AND {0} < {1} THEN CAST(0 AS BIGINT) "
    "WHEN {1} < {2} AND {0} >= {2} THEN {3} + 1 WHEN {1} < {2} "
    "THEN CAST(trunc(CAST({3} AS DOUBLE) * ({0} - {1}) / ({2} - {1})) AS BIGINT) + 1 "
    "WHEN {0} > {1} THEN CAST(0 AS BIGINT) WHEN {0} <= {2} THEN {3} + 1 "
    "ELSE CAST(trunc(CAST({3} AS DOUBLE) * ({1} - {0}) / ({1} - {2})) AS BIGINT) + 1 END"
)

# ---------------------------------------------------------------- other functions


def extreme(word: str) -> Callable[[Call], str]:
    """GREATEST and LEAST: of equal values, such as 0.0 and -0.0, the first."""

    def spell(node: Call) -> str:
        if not node.dtype.is_floating:
            return f"{word}({{*}})"
        sign = ">" if word == "greatest" else "<"
        text = "{0}"
        for position in range(1, len(node.args)):
            other = f"{{{position}}}"
            text = (
                f"CASE WHEN ({text}) IS NULL OR {other} {sign} ({text}) "
                f"THEN coalesce({other}, {text}) ELSE {text} END"
            )
        return text

    return spell


def refuse_extreme(node: Call) -> str | None:
    """Floats double the text with each argument."""
    if not node.dtype.is_atomic or node.dtype.kind == "void":
        return f"{node.function} of {node.dtype} is not proven"
    if node.dtype.is_floating and len(node.args) > 4:
        return f"{node.function} of many floats is not proven"
    return None


def format_number(node: Call) -> str:
    """FORMAT_NUMBER of whole numbers and decimals to a literal number of places, half to even."""
    places = int_of(node.args[1]) or 0
    scale = node.args[0].dtype.scale
    size = f"abs({decimal_to_unscaled('{0}', scale)})" if scale else "abs(CAST({0} AS HUGEINT))"
    if places < scale:
        unit = f"CAST({10 ** (scale - places)} AS HUGEINT)"
        half = f"2 * ({size} % {unit})"
        up = f"{half} > {unit} OR ({half} = {unit} AND ({size} // {unit}) % 2 = 1)"
        size = f"({size} // {unit} + CASE WHEN {up} THEN 1 ELSE 0 END)"
    else:
        size = f"({size} * CAST({10 ** (places - scale)} AS HUGEINT))"
    power = f"CAST({10**places} AS HUGEINT)"
    whole = f"format('{{{{:,}}}}', CAST({size} // {power} AS BIGINT))"
    if places:
        whole += f" || '.' || lpad(CAST({size} % {power} AS VARCHAR), {places}, '0')"
    return f"CASE WHEN {{0}} < 0 THEN '-' ELSE '' END || {whole}"


def refuse_format_number(node: Call) -> str | None:
    """Only exact numbers of at most 18 digits, and a literal number of places."""
    places = int_of(node.args[1])
    dtype = node.args[0].dtype
    if places is None or not 0 <= places <= 10:
        return "format_number in another format is not proven"
    if dtype.is_floating or dtype.precision > 18:
        return f"format_number of {dtype} is not proven"
    return None
