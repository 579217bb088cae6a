"""How Spark names the column of a function: its own name of it, and the arguments left out."""

from __future__ import annotations

# Functions that Spark shows in capitals, if they are called by this name.
_CAPITALS = frozenset(
    """acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot csc degrees e exp expm1 floor
    hypot log log10 log1p log2 pi power radians regexp regexp_like rlike sec signum sin sinh sqrt
    tan tanh""".split()  # noqa: SIM905
)
_OTHER_NAMES = {
    "array_agg": "collect_list",
    "to_varchar": "to_char",
}
# Spark shows their first argument only, and neither schema nor options.
_WITHOUT_OPTIONS = frozenset(
    ("approx_count_distinct", "from_csv", "schema_of_csv", "schema_of_json", "to_csv", "to_json")
)
# The same where a unit comes first.
_OF_UNITS = {
    "dateadd": "timestampadd",
    "date_add": "timestampadd",
    "datediff": "timestampdiff",
    "date_diff": "timestampdiff",
    "timediff": "timestampdiff",
}
_SECONDS = "yyyy-MM-dd HH:mm:ss"
# The arguments that Spark adds, by name and by how many there are.
_ADDED: dict[tuple[str, int], tuple[str, ...]] = {
    ("approx_percentile", 2): ("10000",),
    ("bround", 1): ("0",),
    ("from_unixtime", 1): (_SECONDS,),
    ("hmac", 2): ("SHA-256",),
    ("listagg", 1): ("NULL",),
    ("string_agg", 1): ("NULL",),
    ("locate", 2): ("1",),
    ("lpad", 2): (" ",),
    ("mask", 1): ("X", "x", "n", "NULL"),
    ("mask", 2): ("x", "n", "NULL"),
    ("mask", 3): ("n", "NULL"),
    ("mask", 4): ("NULL",),
    ("months_between", 2): ("true",),
    ("overlay", 3): ("-1",),
    ("percentile", 2): ("1",),
    ("regexp_extract", 2): ("1",),
    ("regexp_extract_all", 2): ("1",),
    ("regexp_instr", 2): ("0",),
    ("regexp_replace", 3): ("1",),
    ("replace", 2): ("",),
    ("round", 1): ("0",),
    ("rpad", 2): (" ",),
    ("sentences", 1): ("", ""),
    ("sentences", 2): ("",),
    ("sort_array", 1): ("true",),
    ("split", 2): ("-1",),
    ("str_to_map", 1): (",", ":"),
    ("str_to_map", 2): (":",),
    ("time_bucket", 2): ("TIMESTAMP '1970-01-01 00:00:00'",),
    ("to_unix_timestamp", 1): (_SECONDS,),
    ("unix_timestamp", 1): (_SECONDS,),
    ("vector_norm", 1): ("2.0",),
    ("vector_normalize", 1): ("2.0",),
    **{("make_ym_interval", n): ("0",) * (2 - n) for n in range(2)},
    **{("make_dt_interval", n): ("0", "0", "0", "0.000000")[n:] for n in range(4)},
    **{("make_interval", n): (*("0",) * 6, "0.000000")[n:] for n in range(7)},
}
_LIKE_OPERATORS = {"isnull": "({} IS NULL)", "isnotnull": "({} IS NOT NULL)", "positive": "(+ {})"}


def function_name(name: str, args: list[str]) -> str:
    """The name of the column of a call.

    Args:
        name: The function, in lower case.
        args: The names of its arguments.
    """
    if name in _LIKE_OPERATORS and len(args) == 1:
        return _LIKE_OPERATORS[name].format(args[0])
    if name == "raise_error" and len(args) == 1:
        args = ["USER_RAISED_EXCEPTION", f"map(errorMessage, {args[0]})"]
    if name == "assert_true" and len(args) == 1:
        args = [*args, f"'{args[0]}' is not true!"]
    if name == "div" and len(args) == 2:
        return f"({args[0]} div {args[1]})"
    if name in ("ltrim", "rtrim") and len(args) == 2:
        side = "LEADING" if name == "ltrim" else "TRAILING"
        return f"TRIM({side} {args[0]} FROM {args[1]})"
    if name in _WITHOUT_OPTIONS:
        args = args[:1]
    if name == "mode" and len(args) == 2 and args[1] == "true":
        return f"mode() WITHIN GROUP (ORDER BY {args[0]} DESC)"
    if name == "like" and len(args) == 2:
        return f"{args[0]} LIKE {args[1]}"
    if name == "log" and len(args) == 1:
        args = ["E()", *args]
    if name == "dateadd" and len(args) == 2:
        name = "date_add"
    if name in _OF_UNITS and len(args) == 3:
        return f"{_OF_UNITS[name]}({', '.join(args)})"
    if name in ("aggregate", "reduce") and len(args) == 3:
        args = [*args, "lambdafunction(namedlambdavariable(), namedlambdavariable())"]
    if name == "convert_timezone" and len(args) == 2:
        args = ["current_timezone()", *args]
    if name == "datepart" and len(args) == 2:
        return f"{name}({args[0]} FROM {args[1]})"
    if name in ("ceil", "floor") and len(args) == 2:
        return f"{name}({', '.join(args)})"
    shown = [*args, *_ADDED.get((name, len(args)), ())]
    name = _OTHER_NAMES.get(name, name)
    return f"{name.upper() if name in _CAPITALS else name}({', '.join(shown)})"


def double_name(value: float) -> str:
    """A double as Java prints it: `1.0E7`, `0.001`."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "." in text else f"{text}.0"
    mantissa, _, power = f"{value!r}".partition("e")
    if not power:  # Python writes powers from 10^16 on only
        digits = mantissa.lstrip("-").replace(".0", "")
        sign = "-" if value < 0 else ""
        whole, _, fraction = digits.partition(".")
        point = len(whole) - 1
        rest = (whole[1:] + fraction).rstrip("0") or "0"
        return f"{sign}{whole[0]}.{rest}E{point}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(power)}"
