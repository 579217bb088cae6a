"""Report where a Spark function runs, and why not on DuckDB.

The answer is read from the registries (scalar functions, macros, aggregates, window functions), so
documentation and planner cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from stagecoach.planner.aggregates import AGGREGATE_ALIASES, AGGREGATES
from stagecoach.planner.analysis.scalars.handlers import CALL_BUILDERS
from stagecoach.planner.functions import MACROS, REGISTRY
from stagecoach.planner.functions.registry import ALIASES
from stagecoach.planner.functions.spell_numbers import APPROXIMATE
from stagecoach.planner.syntax.outside import FORBIDDEN_FUNCTIONS
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS

Status = OneOf["native", "rewrite", "fallback", "unknown", "refused"]

_OPERATORS = {
    "!": "not",
    "!=": "ne",
    "%": "mod",
    "&": "bit_and",
    "*": "multiply",
    "+": "add",
    "-": "subtract",
    "/": "divide",
    "<": "lt",
    "<<": "shiftleft",
    "<=": "le",
    "<=>": "eq_null_safe",
    "<>": "ne",
    "=": "eq",
    "==": "eq",
    ">": "gt",
    ">=": "ge",
    ">>": "shiftright",
    ">>>": "shiftrightunsigned",
    "^": "bit_xor",
    "between": "and",
    "if": "case",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "when": "case",
    "|": "bit_or",
    "||": "concat",
    "~": "bit_not",
}
# What the parser or the builder makes of these, without a row of its own in a registry.
_CASTS = "tinyint smallint int bigint float double boolean string binary"
_WINDOWS = ("window", "session_window", "window_time")
_BUILT = frozenset(
    ("cast", "extract", "range", "grouping", "grouping_id", *_WINDOWS, *_CASTS.split())
)
_TIME_FUNCTIONS = (
    "current_time localtime make_time time time_diff time_from_micros time_from_millis "
    "time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc to_time try_to_time"
)
_RANDOM = "rand randn random randstr shuffle uniform uuid"
_PLACES = (
    "input_file_block_length input_file_block_start input_file_name monotonically_increasing_id "
    "spark_partition_id"
)
_UNSTAGED = {
    **dict.fromkeys(_TIME_FUNCTIONS.split(), "the type TIME, which Spark refuses by default"),
    **dict.fromkeys(
        ("timestamp_nanos", "unix_nanos"),
        "timestamps of nanoseconds, which Spark refuses by default",
    ),
    **dict.fromkeys(_RANDOM.split(), "differs in each run; the planner may copy or move a value"),
    **dict.fromkeys(_PLACES.split(), "depends on how Spark itself reads and splits the rows"),
    **dict.fromkeys(("collations", "sql_keywords", "python_worker_logs"), "reads no table"),
    **dict.fromkeys(("variant_explode", "variant_explode_outer"), "generates rows of VARIANT"),
    **dict.fromkeys(
        ("schema_of_avro", "to_avro"), "needs the Avro package, which Spark leaves out"
    ),
    "collate": "only Spark compares and hashes by collations",
    "measure": "needs a metric view, which no catalog of Stagecoach has",
}


@dataclass(frozen=True)
class Support:
    """Where a function runs.

    Args:
        status: `native`: DuckDB has it as Spark means it; `rewrite`: DuckDB is told what Spark
            means; `fallback`: its stage runs on Spark; `unknown`: its whole query does; `refused`:
            nothing runs it.
        note: Why not on DuckDB, or for which arguments only.
    """

    status: Status
    note: str = ""


def support_of(name: str) -> Support:
    """What becomes of the function that Spark documents under this name."""
    name = name.lower()
    if name in FORBIDDEN_FUNCTIONS:
        return Support("refused", "calls a method of Java or opens a file")
    if name in _UNSTAGED:
        return Support("unknown", _UNSTAGED[name])
    if name in _BUILT:
        return Support("rewrite")
    aggregate = AGGREGATE_ALIASES.get(name, name)
    if aggregate == "count_if":
        return Support("rewrite")
    if aggregate in AGGREGATES:
        entry = AGGREGATES[aggregate]
        if entry.duckdb == aggregate and not entry.reason:
            return Support("native")
        return Support("rewrite") if entry.proof else Support("fallback", entry.reason)
    if name in WINDOW_FUNCTIONS:
        window = WINDOW_FUNCTIONS[name]
        return Support("native" if window.duckdb == name else "rewrite")
    if name in MACROS:
        return Support("rewrite")
    canonical = _OPERATORS.get(name, ALIASES.get(name, name))
    function = REGISTRY.get(canonical)
    if function is None:
        return Support("rewrite") if name in CALL_BUILDERS else Support("unknown")
    if function.duckdb is None:
        return Support("fallback", function.reason or "not proven on DuckDB")
    if canonical in APPROXIMATE:
        return Support("fallback", "DuckDB, to 1e-12, with `planner.exact_math` = false")
    as_is = isinstance(function.duckdb, str) and function.duckdb == function.spark
    return Support("native" if as_is else "rewrite")
