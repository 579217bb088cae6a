"""When runs began and ended: in, a run and the folder that it works in; out, marks for gc.

    runs/<root run>/begun/<run>     before its first stage
    runs/<root run>/ended/<run>     when none of its stages runs any more, nor will

Re-executions share the folder of their root run. It is in use while a run has begun there that has
not ended; a process that is killed leaves its mark, and `infra.upkeep.gc` stops believing it after
a day.
"""

from __future__ import annotations

from infra.storage.layout import run_prefix
from infra.storage.object_store import ObjectStore

BEGUN, ENDED = "begun", "ended"


def mark_begun(store: ObjectStore, root_run_id: str, run_id: str) -> None:
    """Say that a run works in the folder of its root run, itself or another.

    Raises:
        StorageError: The storage refused.
    """
    store.put_if_absent(f"{run_prefix(root_run_id)}/{BEGUN}/{run_id}", b"")


def mark_ended(store: ObjectStore, root_run_id: str, run_id: str) -> None:
    """Say that it does no longer.

    Raises:
        StorageError: The storage refused.
    """
    store.write_bytes(f"{run_prefix(root_run_id)}/{ENDED}/{run_id}", b"")
