"""Groups chunks that may share keys, and picks those that are worth a compaction.

Pure. The groups are those of the planner's rules (`planner.formats.deduplicated.rules`): chunks of
one partition whose times overlap, directly or by others.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.capabilities import TARGET_ROWS
from stagecoach.planner.formats.deduplicated.chunk import Chunk, ChunkValue, DedupTable
from stagecoach.planner.formats.deduplicated.rules.split_by_time import overlapping_groups

"""Rows up to which a compaction makes chunks."""
_MANY_GROUPS = 8

Group = tuple[Chunk, ...]


def overlap_groups(table: DedupTable, chunks: Sequence[Chunk]) -> list[Group]:
    """Return the chunks in groups that share no key, by partition and time.

    Within a group the chunks keep their order.
    """
    return [group for groups in _by_partition(table, chunks) for group in groups]


def _by_partition(table: DedupTable, chunks: Sequence[Chunk]) -> list[list[Group]]:
    """Groups by time, of each partition."""
    partitions: dict[tuple[ChunkValue | None, ...] | None, list[Chunk]] = {}
    divided = table.splits_by_partition and all(c.partition is not None for c in chunks)
    for chunk in chunks:
        partitions.setdefault(chunk.partition if divided else None, []).append(chunk)
    found = []
    for members in partitions.values():
        if table.splits_by_time and all(c.time_range is not None for c in members):
            found.append(overlapping_groups(members))
        else:
            found.append([tuple(members)])
    return found


def needs_dedup(group: Group) -> bool:
    """Whether readers must look for the latest rows of the group's keys."""
    return len(group) > 1 or any(chunk.may_contain_duplicates for chunk in group)


def overlap_share(groups: Sequence[Group]) -> float:
    """Return the share of all rows that are in groups which need deduplication, 0 to 1."""
    total = sum(chunk.num_rows for group in groups for chunk in group)
    needing = sum(chunk.num_rows for group in groups if needs_dedup(group) for chunk in group)
    return needing / total if total else 0.0


def compactions(
    table: DedupTable,
    chunks: Sequence[Chunk],
    *,
    target_rows: int = TARGET_ROWS,
    interval: int | None = None,
) -> list[Group]:
    """Return which chunks are to be merged with each other; none is in two of the groups.

    All chunks that may share keys with one of a group are in it. Neighbours that do not overlap are
    merged as well where that makes several small chunks one, if it does not mean to write a large
    chunk again for the sake of a few rows.

    Args:
        table: Key and roles of columns.
        chunks: All live chunks.
        target_rows: Rows up to which neighbours are merged.
        interval: `chunk_interval` in units of the time column: neighbours of different intervals
            are left apart.
    """
    found: list[Group] = []
    for groups in _by_partition(table, chunks):
        for together in _bins(groups, target_rows, interval):
            if _worth_merging(together):
                found.append(_in_order([chunk for group in together for chunk in group]))
            else:
                found += [_in_order(group) for group in together if _needs_work(table, group)]
    return found


def _bins(groups: Sequence[Group], target_rows: int, interval: int | None) -> list[list[Group]]:
    """Neighbouring groups that have no more than the target's rows together."""
    made: list[list[Group]] = []
    rows = 0
    for group in groups:
        count = sum(chunk.num_rows for chunk in group)
        same = bool(made) and _bucket(made[-1][-1], interval) == _bucket(group, interval)
        if same and rows + count <= target_rows:
            made[-1].append(group)
            rows += count
        else:
            made.append([group])
            rows = count
    return made


def _bucket(group: Group, interval: int | None) -> int | None:
    start = group[0].time_min
    return None if interval is None or start is None else start // interval


def _worth_merging(groups: Sequence[Group]) -> bool:
    sizes = [sum(chunk.num_rows for chunk in group) for group in groups]
    rest = sum(sizes) - max(sizes)
    return len(groups) > 1 and (len(groups) >= _MANY_GROUPS or 4 * rest >= max(sizes))


def _needs_work(table: DedupTable, group: Group) -> bool:
    """Whether it is anything but one sorted Parquet file with one row a key."""
    first = group[0]
    droppable = first.has_deletes and table.version_column is None
    key = tuple(n for n in table.primary_key if first.type_of(n) is not None)
    is_sorted = first.sort_order[: len(key)] == key
    return needs_dedup(group) or first.kind == "arrow" or not is_sorted or droppable


def _in_order(chunks: Sequence[Chunk]) -> Group:
    """By sequence, the oldest first."""
    return tuple(sorted(chunks, key=lambda chunk: chunk.sequence))
