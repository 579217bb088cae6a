"""Garbage collection: removes what nothing needs and is older than a given age.

Removed: files that no manifest names (orphans of failed attempts), uploads that were never ended,
committed shuffles that have expired or are marked as lost, folders of runs that are over, plans and
analyses of plans (`infra.upkeep.plans`), hints at outputs that are gone, and versions of stored
tables beyond those that are kept (`StoredFormat.find_expired`). Kept, whatever its age: what a run
of the last `older_than` or a run in progress has pinned, and what was written since the oldest run
in progress began.

It decides by the times that the store gives its objects, and takes the present moment from the same
clock, so the clock of this machine may be wrong. Of a shuffle the manifest goes first: a collection
that is killed leaves orphans, never a manifest without its files.

A run may find an old shuffle at the same moment. It pins what it found and the collection looks for
pins once more after it has removed the manifests and before it removes their files, and puts those
back that have been pinned meanwhile. So a run that sees the manifest after it has pinned it can
count on the files. A run that finds a shuffle lost puts another manifest in its place; so each
manifest is read right before it goes, and one that is not the one that was found stays.

A commit may name map files in folders of other outputs, which it took over from an earlier commit
(`infra.runtime.stages.taken_over`). A file goes with the last commit that names it
(`infra.upkeep.stored_outputs`). A run pins the earlier commit before it looks whether that is
there, as it does with an output that it reuses.
"""

from __future__ import annotations

import datetime
import logging
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from stagecoach.infra.formats.capabilities import Expired, ExpiryRule
from stagecoach.infra.formats.registry import stored_formats
from stagecoach.infra.runtime.records.hints import old_hints
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import store_now
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.uploads import Upload, abort_uploads, find_uploads
from stagecoach.infra.upkeep.manifests import parse_manifest
from stagecoach.infra.upkeep.plans import (
    ExpiredPlan,
    find_expired_analyses,
    find_expired_plans,
    without_needed,
)
from stagecoach.infra.upkeep.run_needs import ExpiredRun, RunNeeds, Runs
from stagecoach.infra.upkeep.stored_outputs import (
    ExpiredShuffle,
    JudgedOutputs,
    find_outputs,
    judge,
)

log = logging.getLogger(__name__)

_MANIFEST = "manifest.json"
_BATCH = 500
_NEVER = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class GcReport:
    """What a collection removed, or would remove.

    Attributes:
        expired: Committed shuffles.
        runs: Folders of runs.
        orphans: Keys of files that no manifest and no version of a table names.
        orphan_bytes: Their size.
        num_kept: Committed shuffles that stay.
        kept_bytes: Their size.
        num_kept_runs: Folders of runs that stay.
        versions: Versions of tables that queries have made, by table.
        uploads: Uploads that were begun and never ended; what they hold is not known.
        plans: Plans that queries kept.
        analyses: What Spark said of plans.
    """

    expired: tuple[ExpiredShuffle, ...] = ()
    runs: tuple[ExpiredRun, ...] = ()
    orphans: tuple[str, ...] = ()
    orphan_bytes: int = 0
    num_kept: int = 0
    kept_bytes: int = 0
    num_kept_runs: int = 0
    versions: tuple[Expired, ...] = ()
    uploads: tuple[Upload, ...] = ()
    plans: tuple[ExpiredPlan, ...] = ()
    analyses: tuple[ExpiredPlan, ...] = ()

    @property
    def num_objects(self) -> int:
        """Objects in all, without uploads, which are none yet."""
        tables = sum(table.num_objects for table in self.versions)
        return len(self.orphans) + tables + sum(len(item.keys) for item in self._items)

    @property
    def num_bytes(self) -> int:
        """Bytes in all."""
        tables = sum(table.num_bytes for table in self.versions)
        return self.orphan_bytes + tables + sum(item.num_bytes for item in self._items)

    @property
    def _items(self) -> tuple[ExpiredShuffle | ExpiredRun | ExpiredPlan, ...]:
        return (*self.expired, *self.runs, *self.plans, *self.analyses)


def collect_garbage(
    store: ObjectStore,
    *,
    older_than: datetime.timedelta,
    dry_run: bool = False,
    now: datetime.datetime | None = None,
) -> GcReport:
    """Remove orphans, expired shuffles and runs that are over, and return what they were.

    Args:
        store: The storage root.
        older_than: Only objects that were last written before this age are removed.
        dry_run: Whether to remove nothing.
        now: The present moment, with a zone; by the store's own clock if left out.

    Raises:
        StorageError: The store failed.
    """
    # Whoever comes in between takes its folder for one of a run that has just begun.
    now = now or store_now(store, layout.run_prefix(f"clock-{uuid.uuid4()}"))
    runs = Runs(store, now, now - older_than)
    needs = runs.needs()
    report = _decide(store, needs, now, older_than)
    return report if dry_run else _remove(store, report, runs, needs)


def pinned_shuffles(store: ObjectStore, fingerprints: Collection[str]) -> GcReport:
    """Report committed shuffles, of those named, as expired; all others as kept."""
    found = judge(find_outputs(store), fingerprints, _NEVER)
    return GcReport(expired=found.expired, num_kept=len(found.kept), kept_bytes=found.kept_bytes)


def remove_found(
    store: ObjectStore, report: GcReport, others: Runs, folder: ExpiredRun, *, dry_run: bool
) -> GcReport:
    """Remove the shuffles of a report and the folder of their run; return what was removed.

    Args:
        store: The storage root.
        report: What `pinned_shuffles` found.
        others: The other runs, which may pin one of the shuffles at this moment.
        folder: The folder of the run.
        dry_run: Whether to remove nothing.
    """
    needs = others.needs()
    report = replace(report, runs=(folder,), num_kept_runs=needs.num_runs)
    if dry_run:
        return report
    report = _remove_shuffles(store, report, others, needs.pinned)
    _delete(store, folder.keys)
    return report


def _decide(
    store: ObjectStore, needs: RunNeeds, now: datetime.datetime, older_than: datetime.timedelta
) -> GcReport:
    # What was written since the oldest run in progress began is an attempt of it that has yet to be
    # committed, or a commit that it has yet to pin.
    limit = now - older_than if needs.since is None else min(now - older_than, needs.since)
    shuffles = _judged(store, needs.pinned, limit)
    hints = old_hints(store, shuffles.kept, limit)
    rule = ExpiryRule(pinned_uris=needs.uris, older_than=older_than, now=now)
    tables = [item.find_expired(store, rule, limit) for item in stored_formats()]
    orphans = (*shuffles.orphans, *hints, *(item for found in tables for item in found.orphans))
    return GcReport(
        versions=tuple(item for found in tables for item in found.expired),
        expired=shuffles.expired,
        runs=tuple(needs.expired.values()),
        orphans=tuple(item.key for item in orphans),
        orphan_bytes=sum(item.num_bytes for item in orphans),
        num_kept=len(shuffles.kept),
        kept_bytes=shuffles.kept_bytes,
        num_kept_runs=needs.num_runs,
        uploads=find_uploads(store, before=limit),
        plans=find_expired_plans(store, pinned=needs.pinned, limit=limit),
        analyses=find_expired_analyses(store, pinned=needs.pinned, limit=limit),
    )


def _judged(store: ObjectStore, pinned: set[str], limit: datetime.datetime) -> JudgedOutputs:
    """Judge all shuffles; what was written after the limit stays."""
    outputs = find_outputs(store)
    expired = {
        output.fingerprint
        for output in outputs
        if all(item.modified < limit for item in output.items)
        and (output.is_lost or output.fingerprint not in pinned)
    }
    return judge(outputs, expired, limit)


def _remove(store: ObjectStore, report: GcReport, runs: Runs, needs: RunNeeds) -> GcReport:
    """Remove what is in the report, but for what has come to be needed; return what was."""
    later = runs.needs()
    pinned_since = later.uris - needs.uris
    versions = [table.without(pinned_since) for table in report.versions]
    report = _remove_shuffles(store, report, runs, later.pinned - needs.pinned)
    for table in versions:
        table.remove()
    _delete(store, report.orphans)
    abort_uploads(store, report.uploads)
    report = _remove_plans(store, report, runs)
    over = tuple(run for run in report.runs if runs.is_over(run))
    for run in over:
        _delete(store, run.keys)
    kept_runs = report.num_kept_runs + len(report.runs) - len(over)
    removed = tuple(table for table in versions if not table.is_empty)
    return replace(report, versions=removed, runs=over, num_kept_runs=kept_runs)


def _remove_shuffles(
    store: ObjectStore, report: GcReport, runs: Runs, pinned: set[str]
) -> GcReport:
    """Remove expired shuffles but those that were pinned since, or are being pinned."""
    report = _without(report, pinned)
    manifests: dict[str, bytes] = {}
    replaced: set[str] = set()
    for batch in _batches(report.expired):
        for shuffle in batch:
            content = _content(store, shuffle.keys[0])
            if content is not None and _manifest_hash(content) != shuffle.manifest_hash:
                replaced.add(shuffle.fingerprint)
            elif content is not None and not shuffle.is_lost:
                manifests[shuffle.fingerprint] = content
        store.delete([s.keys[0] for s in batch if s.fingerprint not in replaced])
    late = runs.needs().pinned & manifests.keys()
    for fingerprint in late:
        # Unless it has been computed again meanwhile.
        store.put_if_absent(layout.manifest(fingerprint), manifests[fingerprint])
    report = _without(report, late | replaced)
    _delete(store, [key for shuffle in report.expired for key in shuffle.keys[1:]])
    return report


def _remove_plans(store: ObjectStore, report: GcReport, runs: Runs) -> GcReport:
    """Remove plans and analyses but those that have come to be needed."""
    if not report.plans and not report.analyses:
        return report
    pinned = runs.needs().pinned
    plans = without_needed(store, report.plans, pinned)
    analyses = without_needed(store, report.analyses, pinned)
    _delete(store, [key for plan in (*plans, *analyses) for key in plan.keys])
    return replace(report, plans=plans, analyses=analyses)


def _manifest_hash(content: bytes) -> str:
    """Which commit the text of a manifest is; empty where it cannot be read."""
    manifest = parse_manifest(content, uri=_MANIFEST)
    return manifest.manifest_hash if manifest else ""


def _without(report: GcReport, fingerprints: set[str]) -> GcReport:
    """The report without shuffles that are needed after all."""
    kept = [s for s in report.expired if s.fingerprint in fingerprints]
    if not kept:
        return report
    named = frozenset[str]().union(*(shuffle.named for shuffle in kept))
    return replace(
        report,
        expired=tuple(
            s.without(named) for s in report.expired if s.fingerprint not in fingerprints
        ),
        num_kept=report.num_kept + len(kept),
        kept_bytes=report.kept_bytes + sum(s.num_bytes for s in kept),
    )


def _content(store: ObjectStore, key: str) -> bytes | None:
    try:
        return store.read_bytes(key)
    except ObjectMissingError:
        return None  # another collection is faster


def _delete(store: ObjectStore, keys: Sequence[str]) -> None:
    for batch in _batches(keys):
        store.delete(batch)


def _batches(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
