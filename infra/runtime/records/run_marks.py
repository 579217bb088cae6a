"""Marks in storage that say when runs began and ended, for gc.

    runs/<root run>/begun/<run>     before its first stage
    runs/<root run>/ended/<run>     when none of its stages runs any more, nor will

Re-executions share the folder of their root run. It is in use while a run has begun there that has
not ended. A process that is killed marks no end. Where the storage root is a folder, the process of
a run keeps a lock on its first mark, which the kernel drops with the process. The mark names the
machine: gc on that machine knows a dead run by the lock. Elsewhere (on object stores, for runs of
another machine, for runs whose steps have a process each) `infra.upkeep.gc` takes a run for dead
when it has been silent for a day.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import socket
from pathlib import Path

from stagecoach.infra.host.file_locks import try_lock
from stagecoach.infra.storage.layout import run_prefix
from stagecoach.infra.storage.object_store import ObjectStore

BEGUN, ENDED = "begun", "ended"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

log = logging.getLogger(__name__)

# Locked marks of this process, by path.
_locks: dict[str, int] = {}


def mark_begun(
    store: ObjectStore, root_run_id: str, run_id: str, *, is_hosted: bool = False
) -> None:
    """Say that a run works in the folder of its root run, itself or another.

    Args:
        store: The storage root.
        root_run_id: Whose folder it is.
        run_id: The run.
        is_hosted: Whether the run ends with this process at the latest.

    Raises:
        StorageError: The storage refused.
    """
    key = _mark(root_run_id, BEGUN, run_id)
    if not store.is_local:
        store.write_bytes(key, b"")  # what is there says the same
        return
    store.put_if_absent(key, b"")
    if is_hosted:
        _lock(store.uri(key))


def mark_ended(store: ObjectStore, root_run_id: str, run_id: str) -> None:
    """Say that it does no longer.

    Raises:
        StorageError: The storage refused.
    """
    store.write_bytes(_mark(root_run_id, ENDED, run_id), b"")
    if store.is_local:
        lock = _locks.pop(store.uri(_mark(root_run_id, BEGUN, run_id)), None)
        if lock is not None:
            os.close(lock)


def is_known_dead(store: ObjectStore, key: str) -> bool:
    """Return whether the process of a run has ended, going by the run's mark `begun`.

    False also means that there is no telling.
    """
    if not store.is_local:
        return False
    with contextlib.suppress(OSError, ValueError), open(store.uri(key), "rb") as mark:
        values = json.loads(mark.read())
        # Over a network, locks of another machine may not be seen here.
        is_here = isinstance(values, dict) and values.get("machine") == _machine()
        return is_here and try_lock(mark.fileno())
    return False


def _lock(path: str) -> None:
    """Lock a mark for as long as this process lives, then write into it that this was done."""
    if path in _locks:
        return
    try:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            if try_lock(lock, fcntl.LOCK_SH):
                os.write(lock, json.dumps({"machine": _machine(), "pid": os.getpid()}).encode())
                lock, _locks[path] = -1, lock
        finally:
            if lock >= 0:
                os.close(lock)
    except OSError as error:
        log.debug("%s is not locked: %s; gc waits for a day if this process dies", path, error)


def _machine() -> str:
    """Return what tells this machine, since it was last started, from others."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text(encoding="ascii").strip()
    return socket.gethostname()


def _mark(root_run_id: str, what: str, run_id: str) -> str:
    return f"{run_prefix(root_run_id)}/{what}/{run_id}"
