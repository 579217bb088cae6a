"""The registry: every operator and function that a plan may hold, as one table.

In: a canonical name and typed arguments. Out: the result type, Spark's and DuckDB's spelling. An
entry without a DuckDB spelling, or whose condition refuses the arguments, runs on Spark. A DuckDB
spelling may stand here only with the differential test that proves it (`proof`).

Templates are `str.format` patterns over the rendered arguments; `{type}` is the result type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner import duckdb_spelling as duck
from planner import function_rules as rule
from planner.coercion import as_date, as_int, as_string, as_timestamp_like, cast_literal
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import Call, Expression, call
from planner.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, DataType

Args = tuple[Expression, ...]


@dataclass(frozen=True)
class Function:
    """One row of the registry.

    Args:
        name: Canonical name, which plans hold.
        arity: Fewest and most arguments.
        coerce: Casts the arguments as Spark does; raises `AnalysisError` for wrong types.
        result: Result type from the coerced arguments.
        spark: Template for Spark SQL, or a function that gives the template.
        duckdb: The same for DuckDB; None where none is proven.
        refuse: Why these arguments must not run on DuckDB, or None.
        proof: Name of the differential test of the DuckDB spelling.
    """

    name: str
    arity: tuple[int, int]
    coerce: Callable[[Args], Args]
    result: Callable[[Args], DataType]
    spark: str | Callable[[Call], str]
    duckdb: str | Callable[[Call], str] | None = None
    refuse: Callable[[Call], str | None] = lambda _: None
    proof: str = ""


def make_call(name: str, *args: Expression) -> Call:
    """A call with Spark's implicit casts and result type.

    Raises:
        AnalysisError: For a wrong number or type of arguments.
        UnsupportedSqlError: For a function that is not in the registry.
    """
    function = REGISTRY.get(name)
    if function is None:
        raise UnsupportedSqlError(f"function '{name}' is not known to the planner")
    fewest, most = function.arity
    if not fewest <= len(args) <= most:
        raise AnalysisError(
            f"function '{name}' takes {fewest} to {most} arguments, not {len(args)}"
        )
    try:
        coerced = function.coerce(args)
    except AnalysisError as error:
        raise AnalysisError(f"{name}: {error.message}") from error
    return call(name, function.result(coerced), *coerced)


# ---------------------------------------------------------------- the table


def _infix(name: str, operator: str) -> Function:
    return Function(
        name, (2, 2), rule.comparison, rule.fixed(BOOLEAN), f"({{0}} {operator} {{1}})",
        f"({{0}} {operator} {{1}})", refuse=duck.refuse_comparison, proof="comparison",
    )  # fmt: skip


def _nary(name: str, operator: str) -> Function:
    def joined(node: Call) -> str:
        return "(" + f" {operator} ".join(f"{{{i}}}" for i in range(len(node.args))) + ")"

    return Function(
        name, (1, 1 << 20), rule.booleans, rule.fixed(BOOLEAN), joined, joined, proof="boolean"
    )


def _listed(template: str) -> Callable[[Call], str]:
    return lambda node: template.replace(
        "{*}", ", ".join(f"{{{i}}}" for i in range(len(node.args)))
    )


def _in_list(node: Call) -> str:
    return "({0} IN (" + ", ".join(f"{{{i}}}" for i in range(1, len(node.args))) + "))"


def _case_text(node: Call) -> str:
    pairs = range(0, len(node.args) - 1, 2)
    whens = " ".join(f"WHEN {{{i}}} THEN {{{i + 1}}}" for i in pairs)
    return f"CASE {whens} ELSE {{{len(node.args) - 1}}} END"


def _nullif(node: Call) -> str:
    if len(node.args) == 2:
        return "nullif({0}, {1})"
    return "CASE WHEN {1} = {2} THEN NULL ELSE {0} END"


def _field(name: str, duckdb: str, proof: str = "date_fields") -> Function:
    return Function(
        name,
        (1, 1),
        rule.times,
        rule.fixed(INT),
        f"{name}({{0}})",
        f"CAST({duckdb} AS INTEGER)",
        proof=proof,
    )


def _spark_only(
    name: str, arity: tuple[int, int], coerce: Callable[[Args], Args], result: DataType
) -> Function:
    return Function(name, arity, coerce, rule.fixed(result), _listed(f"{name}({{*}})"))


_TABLE: tuple[Function, ...] = (
    Function("add", (2, 2), rule.arithmetic, rule.add_type, "({0} + {1})", duck.add("+"), duck.lossy, "arithmetic"),
    Function("subtract", (2, 2), rule.arithmetic, rule.add_type, "({0} - {1})", duck.add("-"), duck.lossy, "arithmetic"),
    Function("multiply", (2, 2), rule.arithmetic, rule.multiply_type, "({0} * {1})", duck.multiply, duck.lossy, "arithmetic"),
    Function("divide", (2, 2), rule.division, rule.divide_type, "({0} / {1})", duck.divide, duck.refuse_divide, "division"),
    Function("div", (2, 2), rule.integral_division, rule.fixed(BIGINT), "({0} div {1})", duck.int_divide, proof="division"),
    Function("mod", (2, 2), rule.arithmetic, rule.mod_type, "({0} % {1})", duck.mod, duck.only("int", "bigint", "smallint", "tinyint"), "division"),
    Function("negate", (1, 1), rule.numeric, rule.first_type, "(- {0})", "(- {0})", proof="arithmetic"),
    Function("abs", (1, 1), rule.numeric, rule.first_type, "abs({0})", "abs({0})", duck.refuse_abs, "arithmetic"),
    _infix("eq", "="), _infix("ne", "<>"), _infix("lt", "<"), _infix("le", "<="), _infix("gt", ">"), _infix("ge", ">="),
    Function("eq_null_safe", (2, 2), rule.comparison, rule.fixed(BOOLEAN), "({0} <=> {1})", "({0} IS NOT DISTINCT FROM {1})", duck.atomic, "comparison"),
    _nary("and", "AND"), _nary("or", "OR"),
    Function("not", (1, 1), rule.booleans, rule.fixed(BOOLEAN), "(NOT {0})", "(NOT {0})", proof="boolean"),
    Function("is_null", (1, 1), rule.unchanged, rule.fixed(BOOLEAN), "({0} IS NULL)", "({0} IS NULL)", proof="boolean"),
    Function("is_not_null", (1, 1), rule.unchanged, rule.fixed(BOOLEAN), "({0} IS NOT NULL)", "({0} IS NOT NULL)", proof="boolean"),
    Function("in", (2, 1 << 20), rule.membership, rule.fixed(BOOLEAN), _in_list, _in_list, duck.atomic, "comparison"),
    Function("case", (3, 1 << 20), rule.case_branches, rule.last_type, _case_text, _case_text, proof="conditional"),
    Function("coalesce", (1, 1 << 20), rule.unified_for("COALESCE"), rule.first_type, _listed("coalesce({*})"), _listed("coalesce({*})"), proof="conditional"),
    Function("nullif", (2, 2), rule.value_and_comparison, rule.first_type, _nullif, _nullif, duck.atomic, "conditional"),
    Function("greatest", (2, 1 << 20), rule.unified_for("GREATEST"), rule.first_type, _listed("greatest({*})"), _listed("greatest({*})"), duck.only("int", "bigint", "smallint", "tinyint", "decimal", "date", "timestamp", "timestamp_ntz", "string"), "conditional"),
    Function("least", (2, 1 << 20), rule.unified_for("LEAST"), rule.first_type, _listed("least({*})"), _listed("least({*})"), duck.only("int", "bigint", "smallint", "tinyint", "decimal", "date", "timestamp", "timestamp_ntz", "string"), "conditional"),
    Function("like", (2, 2), rule.strings, rule.fixed(BOOLEAN), "({0} LIKE {1})", "({0} LIKE {1})", duck.pattern_is_plain, "like"),
    Function("ilike", (2, 2), rule.strings, rule.fixed(BOOLEAN), "({0} ILIKE {1})"),
    Function("contains", (2, 2), rule.strings, rule.fixed(BOOLEAN), "contains({0}, {1})", "contains({0}, {1})", proof="strings"),
    Function("startswith", (2, 2), rule.strings, rule.fixed(BOOLEAN), "startswith({0}, {1})", "starts_with({0}, {1})", proof="strings"),
    Function("endswith", (2, 2), rule.strings, rule.fixed(BOOLEAN), "endswith({0}, {1})", "ends_with({0}, {1})", proof="strings"),
    Function("rlike", (2, 2), rule.strings, rule.fixed(BOOLEAN), "({0} RLIKE {1})"),
    Function("concat", (1, 1 << 20), rule.strings, rule.fixed(STRING), _listed("concat({*})"), lambda n: "(" + " || ".join(f"{{{i}}}" for i in range(len(n.args))) + ")", proof="strings"),
    Function("substring", (2, 3), rule.string_ints, rule.fixed(STRING), _listed("substring({*})"), duck.substring, duck.refuse_substring, "strings"),
    Function("length", (1, 1), rule.strings, rule.fixed(INT), "length({0})", "CAST(length({0}) AS INTEGER)", proof="strings"),
    Function("replace", (2, 3), rule.replacement, rule.fixed(STRING), _listed("replace({*})"), _listed("replace({*})"), proof="strings"),
    Function("upper", (1, 1), rule.strings, rule.fixed(STRING), "upper({0})", None),
    Function("lower", (1, 1), rule.strings, rule.fixed(STRING), "lower({0})", None),
    Function("trim", (1, 1), rule.strings, rule.fixed(STRING), "trim({0})", None),
    Function("ltrim", (1, 1), rule.strings, rule.fixed(STRING), "ltrim({0})", None),
    Function("rtrim", (1, 1), rule.strings, rule.fixed(STRING), "rtrim({0})", None),
    Function("left", (2, 2), rule.string_ints, rule.fixed(STRING), "left({0}, {1})", "left({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", proof="strings"),
    Function("right", (2, 2), rule.string_ints, rule.fixed(STRING), "right({0}, {1})", "right({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", proof="strings"),
    Function("lpad", (3, 3), rule.string_int_string, rule.fixed(STRING), _listed("lpad({*})"), None),
    Function("rpad", (3, 3), rule.string_int_string, rule.fixed(STRING), _listed("rpad({*})"), None),
    Function("regexp_replace", (3, 3), rule.strings, rule.fixed(STRING), _listed("regexp_replace({*})"), None),
    _field("year", "year(CAST({0} AS DATE))"), _field("month", "month({0})"), _field("day", "day({0})"),
    _field("quarter", "quarter({0})"), _field("dayofyear", "dayofyear({0})"), _field("weekofyear", "weekofyear({0})"),
    _field("dayofweek", "dayofweek({0}) + 1"), _field("weekday", "isodow({0}) - 1"),
    Function("hour", (1, 1), rule.times, rule.fixed(INT), "hour({0})", "CAST(hour({0}) AS INTEGER)", duck.only("timestamp", "timestamp_ntz"), "time_fields"),
    Function("minute", (1, 1), rule.times, rule.fixed(INT), "minute({0})", "CAST(minute({0}) AS INTEGER)", duck.only("timestamp", "timestamp_ntz"), "time_fields"),
    Function("second", (1, 1), rule.times, rule.fixed(INT), "second({0})", "CAST(second({0}) AS INTEGER)", duck.only("timestamp", "timestamp_ntz"), "time_fields"),
    Function("date_add", (2, 2), rule.date_int, rule.fixed(DATE), "date_add({0}, {1})", "({0} + {1})", proof="date_arithmetic"),
    Function("date_sub", (2, 2), rule.date_int, rule.fixed(DATE), "date_sub({0}, {1})", "({0} - {1})", proof="date_arithmetic"),
    Function("datediff", (2, 2), rule.dates, rule.fixed(INT), "datediff({0}, {1})", "CAST({0} - {1} AS INTEGER)", proof="date_arithmetic"),
    Function("add_months", (2, 2), rule.date_int, rule.fixed(DATE), "add_months({0}, {1})", "CAST({0} + to_months({1}) AS DATE)", proof="date_arithmetic"),
    Function("last_day", (1, 1), rule.dates, rule.fixed(DATE), "last_day({0})", "CAST(last_day({0}) AS DATE)", proof="date_arithmetic"),
    Function("trunc", (2, 2), lambda a: (as_date(a[0]), as_string(a[1])), rule.fixed(DATE), "trunc({0}, {1})", "CAST(date_trunc({1}, {0}) AS DATE)", duck.date_unit, "date_arithmetic"),
    Function("date_trunc", (2, 2), lambda a: (as_string(a[0]), cast_literal(as_timestamp_like(a[1]), TIMESTAMP)), rule.fixed(TIMESTAMP), "date_trunc({0}, {1})", None),
    Function("date_format", (2, 2), lambda a: (cast_literal(as_timestamp_like(a[0]), TIMESTAMP), as_string(a[1])), rule.fixed(STRING), "date_format({0}, {1})", None),
    Function("round", (1, 2), lambda a: (rule.numeric(a)[0], *(as_int(x) for x in a[1:])), rule.round_type, _listed("round({*})"), _listed("CAST(round({*}) AS {type})"), duck.refuse_round, "rounding"),
    Function("ceil", (1, 1), rule.numeric, rule.ceil_type, "ceil({0})", "CAST(ceil({0}) AS {type})", duck.only("decimal"), "rounding"),
    Function("floor", (1, 1), rule.numeric, rule.ceil_type, "floor({0})", "CAST(floor({0}) AS {type})", duck.only("decimal"), "rounding"),
    Function("sqrt", (1, 1), rule.doubles, rule.fixed(DOUBLE), "sqrt({0})", None),
    _spark_only("exp", (1, 1), rule.doubles, DOUBLE), _spark_only("ln", (1, 1), rule.doubles, DOUBLE),
    _spark_only("log10", (1, 1), rule.doubles, DOUBLE), _spark_only("log2", (1, 1), rule.doubles, DOUBLE),
    _spark_only("power", (2, 2), rule.doubles, DOUBLE),
    _spark_only("sin", (1, 1), rule.doubles, DOUBLE), _spark_only("cos", (1, 1), rule.doubles, DOUBLE),
    _spark_only("initcap", (1, 1), rule.strings, STRING), _spark_only("reverse", (1, 1), rule.strings, STRING),
    _spark_only("md5", (1, 1), rule.unchanged, STRING),
    # Internal: what the planner itself puts into plans, typed by it.
    Function("average", (2, 2), rule.unchanged, rule.fixed(DOUBLE), duck.spark_average, duck.average, proof="aggregates"),
    Function("multiply_narrow", (2, 2), rule.unchanged, rule.first_type, "CAST({0} * {1} AS {type})", "CAST({0} * {1} AS {type})", proof="arithmetic"),
    Function("single_value", (2, 2), rule.unchanged, rule.first_type, "CASE WHEN {1} > 1 THEN CAST(raise_error('SCALAR_SUBQUERY_TOO_MANY_ROWS') AS {type}) ELSE {0} END", "CASE WHEN {1} > 1 THEN CAST(error('SCALAR_SUBQUERY_TOO_MANY_ROWS') AS {type}) ELSE {0} END", proof="subqueries"),
)  # fmt: skip


REGISTRY: dict[str, Function] = {function.name: function for function in _TABLE}
