"""Buckets of time, and bounds of time windows, which only the planner itself puts into plans.

Source of the arithmetic: Spark's `TimeWindowing`.
"""

from __future__ import annotations

from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_times as spell
from stagecoach.planner.functions.function import Function, listed
from stagecoach.planner.functions.signatures import signature
from stagecoach.planner.functions.spell_time_buckets import refuse_time_bucket, time_bucket
from stagecoach.planner.plan.expressions import Call, Literal


def _numbers(node: Call) -> tuple[int, int, int]:
    """Slide, start of the windows and shift, in microseconds."""
    slide, start, shift = (int(a.value or 0) for a in node.args[1:] if isinstance(a, Literal))
    return slide, start, shift


def _duckdb(node: Call) -> str:
    slide, start, shift = _numbers(node)
    micros = "epoch_us({0})"
    rest = spell.floor_mod(f"({micros} - CAST('{start}' AS BIGINT))", slide)
    make = "make_timestamp" if node.dtype.kind == "timestamp_ntz" else "make_timestamptz"
    return f"{make}({micros} - {rest} + CAST('{shift}' AS BIGINT))"


def _spark(node: Call) -> str:
    slide, start, shift = (f"{n}L" for n in _numbers(node))
    if node.dtype.kind == "timestamp":
        micros = "unix_micros({0})"
        return f"timestamp_micros({micros} - pmod({micros} - {start}, {slide}) + {shift})"
    # NOTE: Spark has no function for the microseconds of a TIMESTAMP_NTZ.
    since = "({0} - TIMESTAMP_NTZ '1970-01-01 00:00:00')"
    parts = ("DAY", 86400), ("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1)
    seconds = " + ".join(
        f"CAST(extract({p} FROM {since}) AS DECIMAL(20,6)) * {n}" for p, n in parts
    )
    micros = f"CAST(({seconds}) * 1000000 AS BIGINT)"
    change = f"({shift} - pmod({micros} - {start}, {slide}))"
    return f"({{0}} + make_dt_interval(0, 0, 0, CAST({change} AS DECIMAL(24,6)) * 0.000001))"


_BUCKET = signature("time_bucket(interval, timestamp | timestamp_ntz, [timestamp | timestamp_ntz])")


FUNCTIONS: tuple[Function, ...] = (
    Function("window_bound", (4, 4), rule.unchanged, rule.first_type, _spark, _duckdb, proof="corpus/time-windows"),
    Function("time_bucket", _BUCKET.arity, _BUCKET.check, lambda args: args[1].dtype, listed("time_bucket({*})"), time_bucket, refuse_time_bucket, "test_functions"),
)  # fmt: skip
