"""Add runtime filters for joins with too many keys for a list.

    source ─▶ keys ─▶ filter of each task ─▶ gather ─▶ their union, one row ─▶ broadcast ─▶ probe

The Bloom filter takes two stages, which are declared and always awaited. The filtered stage drops
rows just before it shuffles them. Spark's `InjectRuntimeFilter` merges and reads its filter in the
same way.
"""

from __future__ import annotations

import math

from stagecoach.planner.distribution.exchanges import Exchanges
from stagecoach.planner.distribution.reasons import BLOOM_PARTS, bloom_reason
from stagecoach.planner.estimates import default_width
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    BloomBuildExec,
    BloomProbeExec,
    ExchangeExec,
    PhysicalPlan,
    ProjectionExec,
)
from stagecoach.planner.types import BINARY

BITS_PER_KEY = 12
"""About 1.1 % of the keys that a filter does not have pass (`stagecoach.infra.worker.bloom`)."""

MAX_SHARE = 0.5
"""A filter that keeps more than half of the rows costs more than it saves."""

_WORD_BYTES = 8
# Two stages more to wait for, and all rows leave the engine only to be dropped: what a task writes
# and another one reads in about the same time.
_WAIT_BYTES = 48 << 20


def list_fits(exchanges: Exchanges, source: PhysicalPlan, keys: tuple[int, ...]) -> bool:
    """Whether a list of a source's keys is small enough to be read by every task."""
    options = exchanges.context.options
    dtypes = {c.id: c.dtype for c in source.columns}
    rows, _ = exchanges.sizes.size(source)
    num_bytes = rows * (1 + sum(default_width(dtypes[k]) for k in keys))
    return num_bytes <= min(options.key_list_bytes, options.broadcast_bytes)


def bloom_words(num_keys: float) -> int:
    """How many 64-bit words a filter of so many keys has."""
    return max(math.ceil(num_keys * BITS_PER_KEY / (8 * _WORD_BYTES)), 1)


def bloom_pays(
    exchanges: Exchanges,
    source: PhysicalPlan,
    keys: tuple[int, ...],
    share: float,
    filtered_bytes: float,
) -> bool:
    """Whether a Bloom filter saves more than it costs, where a list of the keys is too large.

    Args:
        exchanges: Knows the options and the sizes of operators.
        source: What has the keys.
        keys: Numbers of its key columns.
        share: Of the other side's rows that have a partner.
        filtered_bytes: Of the other side.
    """
    options = exchanges.context.options
    rows, source_bytes = exchanges.sizes.size(source)
    filter_bytes = bloom_words(rows) * _WORD_BYTES
    saved = filtered_bytes * (1.0 - share)
    return (
        options.runtime_filters
        and isinstance(source, ExchangeExec)
        and share <= MAX_SHARE
        and filter_bytes <= min(options.bloom_bytes, options.broadcast_bytes)
        and not list_fits(exchanges, source, keys)
        and saved >= source_bytes + filter_bytes + _WAIT_BYTES
    )


def bloom_probe(
    exchanges: Exchanges,
    side: PhysicalPlan,
    keys: tuple[int, ...],
    source: PhysicalPlan,
    source_keys: tuple[int, ...],
    share: float,
) -> PhysicalPlan:
    """The rows of a side whose keys may be among those of a source, to be shuffled."""
    sizes, context = exchanges.sizes, exchanges.context
    known = {c.id: c for c in source.columns}
    num_words = bloom_words(sizes.size(source)[0])
    items: tuple[NamedExpression, ...] = tuple(
        (context.column(known[k].name, known[k].dtype), known[k].ref) for k in source_keys
    )
    listed = sizes.note_size(ProjectionExec(source, items), source)
    columns = tuple((context.column("bloom", BINARY),) for _ in range(2))

    def one_filter(plan: PhysicalPlan) -> PhysicalPlan:
        return sizes.set_size(plan, 1.0, num_words * _WORD_BYTES)

    partial = BloomBuildExec(listed, tuple(c.ref for c, _ in items), columns[0], num_words)
    gathered = ExchangeExec(one_filter(partial), "gather", reason=BLOOM_PARTS)
    merged = BloomBuildExec(one_filter(gathered), (), columns[1], num_words)
    names = [known[k].name for k in source_keys]
    reason = bloom_reason(names, share, num_words * _WORD_BYTES)
    sent = one_filter(ExchangeExec(one_filter(merged), "broadcast", reason=reason))
    mine = {c.id: c for c in side.columns}
    probe = BloomProbeExec(side, sent, tuple(mine[k].ref for k in keys), num_words)
    rows, num_bytes = sizes.size(side)
    return sizes.set_size(probe, rows * share, num_bytes * share)
