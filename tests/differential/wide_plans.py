"""Small queries planned as large ones are: one task of several cores, with all that it may gain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.distribution import reduce_builds, wide_tasks
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
    (reduce_builds, "_MAX_SHARE", float("inf")),
    (reduce_builds, "_SAVED_SECONDS", float("-inf")),
)


@contextmanager
def all_worth_it() -> Iterator[None]:
    """Plan within it as if each part were worth keeping and each build side worth reducing."""
    with ExitStack() as stack:
        for module, name, value in _ALWAYS:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def read_by_all_cores(catalog: MappingCatalog) -> MappingCatalog:
    """The tables, of which each is read by all cores of a task."""
    infos = [info for name in catalog.table_names() if (info := catalog.table(name)) is not None]
    return MappingCatalog([replace(info, by_cores=True, is_local=True) for info in infos])
