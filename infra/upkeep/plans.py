"""Decides which plans of queries, and which of Spark's analyses of them, gc may remove.

Kept, whatever their age: the newest plan and the newest analysis of each query, those of a plan
that a run has pinned (`StagePointer.plan`), and what was written since the oldest run in progress
began. A code location writes the plans that it uses once a day, so they are never old.

Where one is missing, the query is planned or analysed anew, and nothing else happens. So a run that
reads one just when it goes loses nothing; one that was pinned or written again stays.
"""

from __future__ import annotations

import datetime
import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import StoredObject, list_objects
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.planner.errors import GraphFormatError
from stagecoach.planner.plan.serde import load_graph

log = logging.getLogger(__name__)

_OUR_NAME = re.compile(r"[0-9a-f]{8,128}\.json")
# What a process that was killed while it wrote has left, by the names of our stores.
_LEFT_BEHIND = re.compile(r"([0-9a-f]{8,128}\.json)?\.tmp-[0-9a-f]+")
_REQUESTS = 16


@dataclass(frozen=True, kw_only=True)
class ExpiredPlan:
    """A plan, or an analysis of one, that nothing needs any more.

    Attributes:
        query: Name of the query; empty where it is not known.
        plan_hash: Which plan; empty where it is not known.
        stored: The object as it was found.
    """

    query: str
    plan_hash: str
    stored: StoredObject

    @property
    def keys(self) -> tuple[str, ...]:
        """The only object."""
        return (self.stored.key,)

    @property
    def num_bytes(self) -> int:
        """Its size."""
        return self.stored.num_bytes


def find_expired_plans(
    store: ObjectStore, *, pinned: Collection[str], limit: datetime.datetime
) -> tuple[ExpiredPlan, ...]:
    """Return the plans of queries that may go.

    Args:
        store: The storage root.
        pinned: Hashes that runs need, those of plans among them.
        limit: What was written after it stays.

    Raises:
        StorageError: The store failed.
    """
    queries: dict[str, list[StoredObject]] = defaultdict(list)
    for item in _ours(store, layout.PLANS_ROOT, depth=3):
        queries[item.key.split("/")[1]].append(item)
    expired: list[ExpiredPlan] = []
    for query, items in sorted(queries.items()):
        newest = _newest(items)
        for item in items:
            # Only what is old is read.
            if item is newest or item.modified >= limit:
                continue
            plan_hash = _plan_hash(store, item)
            if plan_hash not in pinned:
                expired.append(ExpiredPlan(query=query, plan_hash=plan_hash, stored=item))
    return tuple(expired)


def find_expired_analyses(
    store: ObjectStore, *, pinned: Collection[str], limit: datetime.datetime
) -> tuple[ExpiredPlan, ...]:
    """Return the analyses of plans that may go; see `find_expired_plans`."""
    items = list(_ours(store, layout.ANALYSIS_ROOT, depth=2))
    if all(item.modified >= limit for item in items):
        return ()
    with ThreadPoolExecutor(_REQUESTS) as pool:
        found = list(pool.map(lambda item: _analysis(store, item), items))
    queries: dict[str, list[StoredObject]] = defaultdict(list)
    for analysis in found:
        queries[analysis.query].append(analysis.stored)
    newest = {_newest(items) for query, items in queries.items() if query}
    return tuple(
        analysis
        for analysis in found
        if analysis.stored.modified < limit
        and analysis.stored not in newest
        and analysis.plan_hash not in pinned
    )


def without_needed(
    store: ObjectStore, expired: Sequence[ExpiredPlan], pinned: Collection[str]
) -> tuple[ExpiredPlan, ...]:
    """Return what still may go where plans have been pinned or written again since.

    Args:
        store: The storage root.
        expired: What was found.
        pinned: Hashes that runs need now.

    Raises:
        StorageError: The store failed.
    """
    folders = sorted({plan.stored.key.rpartition("/")[0] for plan in expired})
    now = {item for folder in folders for item in list_objects(store, folder)}
    return tuple(p for p in expired if p.plan_hash not in pinned and p.stored in now)


def _ours(store: ObjectStore, root: str, *, depth: int) -> Iterator[StoredObject]:
    """What lies below a folder under a name that we give."""
    for item in list_objects(store, root):
        parts = item.key.split("/")
        if len(parts) == depth and (_is_whole(item) or _LEFT_BEHIND.fullmatch(parts[-1])):
            yield item
        else:
            log.warning("%s is not ours and stays", store.uri(item.key))


def _is_whole(item: StoredObject) -> bool:
    """Whether it is an object that was written to its end."""
    return _OUR_NAME.fullmatch(item.key.rsplit("/", 1)[-1]) is not None


def _newest(items: Sequence[StoredObject]) -> StoredObject | None:
    whole = (item for item in items if _is_whole(item))
    return max(whole, key=lambda item: (item.modified, item.key), default=None)


def _plan_hash(store: ObjectStore, item: StoredObject) -> str:
    """Which plan it is; empty where no process of this version could use it."""
    try:
        return load_graph(_text(store, item)).plan_hash
    except (GraphFormatError, UnicodeDecodeError):
        return ""


def _analysis(store: ObjectStore, item: StoredObject) -> ExpiredPlan:
    try:
        found = json.loads(_text(store, item))
    except ValueError:
        found = {}
    values: Mapping[str, Any] = found if isinstance(found, dict) else {}
    query, plan_hash = (str(values.get(name, "")) for name in ("query", "plan"))
    return ExpiredPlan(query=query, plan_hash=plan_hash, stored=item)


def _text(store: ObjectStore, item: StoredObject) -> str:
    """The object's text; empty where it was never whole, or another collection is faster."""
    if not _is_whole(item):
        return ""
    try:
        return store.read_bytes(item.key).decode()
    except ObjectMissingError:
        return ""
