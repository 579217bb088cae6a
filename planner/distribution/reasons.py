"""Describe in one line why an exchange is there, for `explain`.

The text is for people. It is not part of any hash, and no decision is based on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.planner.plan.expression_text import ExpressionText
from stagecoach.planner.plan.expressions import Column, Expression
from stagecoach.planner.plan.physical import ExchangeExec, HashJoinExec

RESULT = "the result of the query"
SHARED = "several places of the query read these rows, which are computed once"
WHOLE_INPUT = "one task computes this input, so it is a stage of its own"
BLOOM_PARTS = "the filters of all tasks become one"
_MOST_NAMES = 4


def reason_of(exchange: ExchangeExec) -> str:
    """The reason that the exchange was added for; one that its kind implies if none was given."""
    if exchange.reason:
        return exchange.reason
    if exchange.kind == "broadcast":
        return "every task needs all of these rows"
    if exchange.kind == "gather" or not exchange.keys:
        return "one task needs all of these rows"
    by_id = {c.id: c for c in exchange.child.columns}
    names = _listed([by_id[k].name for k in exchange.keys])
    return f"rows of equal {names} must meet in one task: the input is not partitioned by them"


def group_reason(keys: Sequence[Column]) -> str:
    """For rows of one group that are to meet in one task."""
    if not keys:
        return "one group over all rows"
    if wrong := next((k for k in keys if not k.dtype.is_atomic), None):
        return f"group key {wrong.name} is of type {wrong.dtype}, by which rows are not hashed"
    names = _listed([k.name for k in keys])
    return f"group keys {names}: the input is not partitioned by them"


def order_reason(fetch: int | None) -> str:
    """For sorted rows of several tasks that become one order."""
    if fetch is None:
        return "one order over all rows"
    return f"one order over all rows, of which each task sends its first {fetch:,}"


def limit_reason(limit: int | None, offset: int) -> str:
    """For rows that are counted over all tasks."""
    words = [] if limit is None else [f"LIMIT {limit:,}"]
    words += [f"OFFSET {offset:,}"] if offset else []
    return f"{' '.join(words) or 'LIMIT'} counts the rows of all tasks"


def broadcast_reason(join: HashJoinExec, num_bytes: float, limit: int) -> str:
    """For a build side that every task of a join reads whole."""
    if not join.left_keys:
        return f"{join_text(join)}: every row is compared with all rows of this side"
    return f"{join_text(join)}: this side is small, {size_text(num_bytes)} <= {size_text(limit)}"


def prune_reason(join: HashJoinExec, table: str) -> str:
    """For a build side that is a stage of its own so that its keys are there before a scan."""
    return f"{join_text(join)}: files of {table} without these keys are not read"


def filter_reason(keys: Sequence[str], share: float, num_bytes: float) -> str:
    """For the key list of a runtime filter."""
    return (
        f"runtime filter on {_listed(keys)}: about {share:.0%} of the other side's rows have a "
        f"partner here, and this list of keys is small, {size_text(num_bytes)}"
    )


def bloom_reason(keys: Sequence[str], share: float, num_bytes: float) -> str:
    """For the Bloom filter of a runtime filter."""
    return (
        f"runtime filter on {_listed(keys)}: about {share:.0%} of the other side's rows have a "
        f"partner here; a list of the keys is too large, a Bloom filter has {size_text(num_bytes)}"
    )


def one_task_join_reason(join: HashJoinExec) -> str:
    """For a side that is brought to the one task that joins."""
    if not join.left_keys:
        return f"{join_text(join)}: no equality that rows could be hashed by"
    return f"{join_text(join)}: the other side is in one task"


def partitioned_join_reason(
    join: HashJoinExec, moves: tuple[bool, bool], count: int, num_bytes: float, limit: int
) -> str:
    """For a side of a join that is hashed by its keys.

    Args:
        join: The join, with its keys as the query has them.
        moves: Whether the left and the right side are exchanged.
        count: Partitions of both sides.
        num_bytes: Estimated bytes of the right side.
        limit: Most bytes of a side that is sent to every task instead.
    """
    large = f"; too large to broadcast, {size_text(num_bytes)} > {size_text(limit)}"
    end = large if num_bytes > limit > 0 and join.kind != "full" else ""
    if all(moves):
        return f"{join_text(join)} are hashed: neither side is partitioned by them{end}"
    stays = "right" if moves[0] else "left"
    return f"{join_text(join)} are hashed: the {stays} side is already, in {count:,} partitions"


def join_text(join: HashJoinExec) -> str:
    """What a join matches, for the head of a reason."""
    if not join.left_keys:
        return f"{join.kind} join without an equality"
    names = {c.id: c.name for side in join.children for c in side.columns}
    text = ExpressionText(names)
    pairs = [_pair(text, *keys) for keys in zip(join.left_keys, join.right_keys, strict=True)]
    return f"{'' if join.kind == 'inner' else join.kind + ' '}join keys {_listed(pairs)}"


def size_text(num_bytes: float) -> str:
    """Bytes for people, such as `1.5 MiB`."""
    value, units = float(num_bytes), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:,.0f} B" if units[0] == "B" else f"{value:,.1f} {units[0]}"


def _pair(text: ExpressionText, left: Expression, right: Expression) -> str:
    return f"{text(left)} = {text(right)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
