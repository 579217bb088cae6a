"""A planned scan of chunks as text for people: groups, what each holds, why it is compared.

It looks like this:

    m: 6 chunks, 124 rows; 2 chunks are read as they are, 93 rows (75 %) are compared in 1 group
      group 1 by device, time: their times overlap
        older rows: day1, day2 (60 rows); newer rows hide theirs
        newer rows: late1, late2 (33 rows)
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.layers import Layers, layers_of
from stagecoach.planner.formats.deduplicated.reading import Group, Reading
from stagecoach.planner.formats.deduplicated.slices import Slice, joined, slices_of

_MAX_NAMES = 6
_MAX_GROUPS = 20


def reading_text(reading: Reading, context: ChunkContext, num_chunks: int) -> str:
    """What is read of a table, a line for the whole and some for each group.

    Args:
        reading: What the plan reads.
        context: The table.
        num_chunks: Chunks of the table, those that a filter rules out included.
    """
    groups = reading.groups
    read = len(reading.plain) + sum(len(g.chunks) for g in groups)
    ruled_out = f" of {num_chunks:,}" if read < num_chunks else ""
    share = 100 * reading.compared_rows / reading.num_rows if reading.num_rows else 0.0
    compared = (
        f"{reading.compared_rows:,} rows ({share:.0f} %) are compared in {_count(groups, 'group')}"
        if groups
        else "no rows are compared"
    )
    lines = [
        f"{context.table.name}: {read:,}{ruled_out} chunks, {reading.num_rows:,} rows; "
        f"{len(reading.plain):,} read as they are, {compared}"
    ]
    for number, group in enumerate(groups[:_MAX_GROUPS], start=1):
        lines += [f"  {line}" for line in _group_lines(number, group, context)]
    if len(groups) > _MAX_GROUPS:
        lines.append(f"  … and {len(groups) - _MAX_GROUPS:,} more groups")
    return "\n".join(lines)


def _group_lines(number: int, group: Group, context: ChunkContext) -> list[str]:
    slices = slices_of(group.chunks, group.key, context)
    layers = [layers_of(part, context) for part in slices]
    lines = [f"group {number} by {', '.join(group.key)}: {group.reason}"]
    if len(slices) > 1:
        lines[0] += f"; up to {len(slices):,} tasks may share it, cut by {_cut_by(slices, context)}"
    whole = layers_of(joined(slices)[0], context)
    if whole.plain and len(slices) > 1:
        lines.append(f"  alone in their time: {_names(whole.plain)}")
    if whole.base:
        rule = "" if context.table.version_column is None else " unless their version is lower"
        lines.append(f"  older rows: {_names(whole.base)}; newer rows hide theirs{rule}")
        lines.append(f"  newer rows: {_names(whole.newer)}")
    else:
        lines.append(f"  rows: {_names(_compared(layers))}; all are compared")
    return lines


def _cut_by(slices: Sequence[Slice], context: ChunkContext) -> str:
    ways = [str(context.table.time_column)] if len({s.low for s in slices}) > 1 else []
    ways += dict.fromkeys(s.keys.column for s in slices if s.keys is not None)
    if any(s.num_shares > 1 and s.keys is None for s in slices):
        ways.append("the hash of the key")
    return ", then ".join(ways)


def _compared(layers: Sequence[Layers]) -> tuple[Chunk, ...]:
    return tuple({c.chunk_id: c for one in layers for c in one.newer}.values())


def _names(chunks: Sequence[Chunk]) -> str:
    shown = ", ".join(c.chunk_id for c in chunks[:_MAX_NAMES])
    more = f" and {len(chunks) - _MAX_NAMES:,} more" if len(chunks) > _MAX_NAMES else ""
    return f"{shown}{more} ({sum(c.num_rows for c in chunks):,} rows)"


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items):,} {noun}{'' if len(items) == 1 else 's'}"
