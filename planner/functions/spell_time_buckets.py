"""Spell TIME_BUCKET for DuckDB.

Buckets shorter than a day are counted in instants, longer ones in local times. Source: Spark's
`DateTimeUtils.timeBucketDTInterval` and `timeBucketYMInterval`.
"""

from __future__ import annotations

from stagecoach.planner.functions import spell_times as spell
from stagecoach.planner.plan.expressions import Call, Literal

_EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"


def time_bucket(node: Call) -> str:
    """TIME_BUCKET: the start of the bucket that a moment is in."""
    size = _size(node)
    assert size is not None, node
    zoned = node.dtype.kind == "timestamp"
    when = spell.local_of(1, node.dtype)
    if node.args[0].dtype.is_year_month:
        months = f"((year({when}) - 1970) * 12 + month({when}) - 1)"
        start = f"({_EPOCH} + to_months({spell.floor_div(months, size)} * {size}))"
        return spell.zoned(start) if zoned else start
    origin = "{2}" if len(node.args) > 2 else spell.zoned(_EPOCH) if zoned else _EPOCH
    if zoned and size < spell.DAY:
        return _start("{1}", origin, size, "make_timestamptz")
    if zoned:
        origin = spell.local(origin)
    start = _start(when, origin, size, "make_timestamp")
    return spell.zoned(start) if zoned else start


def _start(when: str, origin: str, size: int, make: str) -> str:
    """The last of the moments `origin + n * size` that is not after a moment."""
    rest = spell.floor_mod(f"(epoch_us({when}) - epoch_us({origin}))", size)
    return f"{make}(epoch_us({when}) - {rest})"


def refuse_time_bucket(node: Call) -> str | None:
    """Only literal sizes, of whole days where there is a time zone; months since 1970."""
    size = _size(node)
    if size is None:
        return "time_bucket of a computed size is not proven"
    if node.args[0].dtype.is_year_month and len(node.args) > 2:
        return "time_bucket of months since a given moment is not proven"
    zoned = node.dtype.kind == "timestamp" and not node.args[0].dtype.is_year_month
    if zoned and size > spell.DAY and size % spell.DAY:
        return "time_bucket of days and hours in a time zone is not proven"
    return None


def _size(node: Call) -> int | None:
    size = node.args[0]
    if isinstance(size, Literal) and isinstance(size.value, int) and size.value > 0:
        return size.value
    return None
