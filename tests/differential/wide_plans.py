"""Small queries planned as large ones are: one task of several cores, with all that it may gain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.distribution import (
    group_ranges,
    reduce_builds,
    share_semi_joins,
    wide_tasks,
)
from stagecoach.planner.optimizer import reduce_aggregates
from stagecoach.planner.options import PlannerOptions

CORES = 4
WIDE = PlannerOptions(
    single_task_bytes=0,
    inline_bytes=0,
    task_cores=CORES,
    max_lost_seconds=1000,
    num_partitions=3,
)
_ALWAYS = (
    (wide_tasks, "MIN_SECONDS", 0.0),
    (wide_tasks, "_SHARED_SECONDS", float("-inf")),
    (wide_tasks, "_MAX_FILTER_SHARE", float("inf")),
    (reduce_aggregates, "MAX_SHARE", float("inf")),
    (reduce_aggregates, "_MAX_COST", float("inf")),
    (share_semi_joins, "_MAX_SHARE", float("inf")),
    (reduce_builds, "_MAX_SHARE", float("inf")),
    (reduce_builds, "_SAVED_SECONDS", float("-inf")),
    (group_ranges, "_GROUPS", 0.01),
    (group_ranges, "_LEAST_RANGES", 2),
    (group_ranges, "_MOST_RANGES", 3),
    (group_ranges, "_MOST_READ_AGAIN", float("inf")),
)


@contextmanager
def all_worth_it() -> Iterator[None]:
    """Plan within it as if each part were worth keeping and each input worth reducing."""
    with ExitStack() as stack:
        for module, name, value in _ALWAYS:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def read_by_all_cores(catalog: MappingCatalog) -> MappingCatalog:
    """The tables, of which each is read by all cores of a task."""
    return MappingCatalog([replace(i, by_cores=True, is_local=True) for i in _infos(catalog)])


def with_bounds(catalog: MappingCatalog, low: int = -3, high: int = 9) -> MappingCatalog:
    """The tables with statistics of their columns of whole numbers, which need not be true."""
    return MappingCatalog([_bounded(info, low, high) for info in _infos(catalog)])


def _infos(catalog: MappingCatalog) -> list[TableInfo]:
    found = map(catalog.table, catalog.table_names())
    return [info for info in found if info is not None]


def _bounded(info: TableInfo, low: int, high: int) -> TableInfo:
    if info.stats is None:
        return info
    columns = dict(info.stats.columns)
    for field in info.columns:
        if field.dtype.is_integral and field.name in columns:
            columns[field.name] = replace(columns[field.name], min_value=low, max_value=high)
    return replace(info, stats=replace(info.stats, columns=columns))
