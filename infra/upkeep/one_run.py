"""Garbage collection of a single run, for `stagecoach gc --run ID`, whatever its age.

Removed are the folder of the run and the shuffles that no other run has pinned. Files of failed
attempts do not say which run they belong to: they stay until `infra.upkeep.gc` collects them.
"""

from __future__ import annotations

import datetime
import uuid

from stagecoach.infra.errors import ConfigError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import store_now
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.gc import GcReport, pinned_shuffles, remove_found
from stagecoach.infra.upkeep.run_needs import Runs

_ALWAYS = datetime.datetime.min.replace(tzinfo=datetime.UTC)


def collect_run(store: ObjectStore, run_id: str, *, dry_run: bool = False) -> GcReport:
    """Remove what one run has left, and return what it was.

    Args:
        store: The storage root.
        run_id: The run; re-executions belong to the run that they re-execute.
        dry_run: Whether to remove nothing.

    Raises:
        ConfigError: There is no such run, or it may be in progress.
        StorageError: The store failed.
    """
    now = store_now(store, layout.run_prefix(f"clock-{uuid.uuid4()}"))
    # Whatever other runs have pinned stays, however old they are.
    others = Runs(store, now, _ALWAYS, without=run_id)
    if not others.has_folder(run_id):
        raise ConfigError(f"there is no run '{run_id}' in {store.uri(layout.RUNS_ROOT)}")
    if others.is_alive(run_id):
        raise ConfigError(
            f"run '{run_id}' has not ended, as far as is known here, and was active in the last "
            "24 hours; nothing was removed. Cancel it first. If its process was killed on "
            "another machine, or the storage root is an object store, try again after 24 hours"
        )
    needs = others.needs()
    report = pinned_shuffles(store, others.pinned_by(run_id) - needs.pinned)
    return remove_found(store, report, others, others.folder(run_id), dry_run=dry_run)
