"""Counts what a storage root holds: objects and bytes by query and stage.

For people; it lists the store and reads every manifest.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from stagecoach.infra.formats.registry import stored_formats
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import StoredObject, list_objects
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.manifests import manifest_at

_MANIFEST = "/manifest.json"
_REQUESTS = 16


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Objects of one kind.

    Attributes:
        name: A stage (`query/stage_3`), a table, or a folder of the storage.
        num_items: Commits of the stage, or 1.
        num_objects: Objects.
        num_bytes: Their size.
        num_rows: Rows of the commits; 0 for others.
        last_written: When the newest object was written; None if there is none.
    """

    name: str
    num_items: int
    num_objects: int
    num_bytes: int
    num_rows: int = 0
    last_written: datetime.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class StorageUsage:
    """What a storage root holds.

    Attributes:
        stages: Committed shuffles by query and stage, those of a query together.
        uncommitted: Shuffle files that no manifest names: attempts under way, and orphans.
        tables: Published tables.
        runs: Folders of runs.
        plans: Plans that queries keep; its items are queries.
        analyses: What Spark said of plans.
        others: Everything else by folder.
    """

    stages: tuple[Usage, ...]
    uncommitted: Usage
    tables: tuple[Usage, ...]
    runs: Usage
    plans: Usage
    analyses: Usage
    others: tuple[Usage, ...]

    @property
    def total(self) -> Usage:
        """All of it."""
        kept = (self.runs, self.plans, self.analyses, *self.others)
        parts = (*self.stages, self.uncommitted, *self.tables, *kept)
        return Usage(
            name="total",
            num_items=len(parts),
            num_objects=sum(part.num_objects for part in parts),
            num_bytes=sum(part.num_bytes for part in parts),
            last_written=max((p.last_written for p in parts if p.last_written), default=None),
        )


def storage_usage(store: ObjectStore) -> StorageUsage:
    """Look at everything in a storage root.

    Raises:
        StorageError: The store failed.
    """
    folders: dict[str, list[StoredObject]] = defaultdict(list)
    for item in list_objects(store, ""):
        folders[item.key.split("/")[0]].append(item)
    stages, uncommitted = _shuffles(store, folders.pop(layout.SHUFFLE_ROOT, []))
    tables = _grouped(item for made in stored_formats() for item in folders.pop(made.folder, []))
    runs, plans, analyses = (
        folders.pop(root, [])
        for root in (layout.RUNS_ROOT, layout.PLANS_ROOT, layout.ANALYSIS_ROOT)
    )
    return StorageUsage(
        stages=stages,
        uncommitted=_usage("never committed", uncommitted),
        tables=tables,
        runs=_usage("runs", runs, num_items=_num_folders(runs)),
        plans=_usage("plans", plans, num_items=_num_folders(plans)),
        analyses=_usage("analyses of plans", analyses, num_items=len(analyses)),
        others=tuple(_usage(name, items) for name, items in sorted(folders.items())),
    )


def _shuffles(
    store: ObjectStore, items: Iterable[StoredObject]
) -> tuple[tuple[Usage, ...], list[StoredObject]]:
    shuffles: dict[str, list[StoredObject]] = defaultdict(list)
    for item in items:
        shuffles[item.key.rsplit("/", 1)[0]].append(item)
    committed = [key for key, found in shuffles.items() if _is_committed(found)]
    with ThreadPoolExecutor(_REQUESTS) as pool:
        found_manifests = pool.map(lambda prefix: manifest_at(store, prefix + _MANIFEST), committed)
        manifests = dict(zip(committed, found_manifests, strict=True))
    by_stage: dict[str, list[StoredObject]] = defaultdict(list)
    counts: dict[str, list[int]] = defaultdict(list)
    uncommitted: list[StoredObject] = []
    # A file that several commits name belongs to the stage of the last of them.
    owners: dict[str, str] = {}
    for manifest in manifests.values():
        if manifest is not None:
            owners |= dict.fromkeys(manifest.file_keys(), manifest.stage_name)
            counts[manifest.stage_name].append(manifest.num_rows)
    for item in (item for found in shuffles.values() for item in found):
        owner = owners.get(item.key)
        (uncommitted if owner is None else by_stage[owner]).append(item)
    stages = tuple(
        _usage(name, by_stage[name], num_items=len(counts[name]), num_rows=sum(counts[name]))
        for name in sorted(counts)
    )
    return stages, uncommitted


def _is_committed(items: Sequence[StoredObject]) -> bool:
    return any(item.key.endswith(_MANIFEST) for item in items)


def _grouped(items: Iterable[StoredObject]) -> tuple[Usage, ...]:
    """Usage by the folder below the first."""
    groups: dict[str, list[StoredObject]] = defaultdict(list)
    for item in items:
        groups[item.key.split("/")[1]].append(item)
    return tuple(_usage(name, found) for name, found in sorted(groups.items()))


def _num_folders(items: Iterable[StoredObject]) -> int:
    """How many folders there are below the first."""
    return len({item.key.split("/")[1] for item in items})


def _usage(
    name: str, items: Sequence[StoredObject], *, num_items: int = 1, num_rows: int = 0
) -> Usage:
    return Usage(
        name=name,
        num_items=num_items,
        num_objects=len(items),
        num_bytes=sum(item.num_bytes for item in items),
        num_rows=num_rows,
        last_written=max((item.modified for item in items), default=None),
    )
