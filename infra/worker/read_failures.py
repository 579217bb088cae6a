"""Keeps failures of reading inside Spark's own queries, whose class Spark would lose.

Spark passes on the text of what a Python function raises, cut and mixed with stack traces, and not
its class. A function that gives rows has no place for a report. So it leaves its failure as a small
object in the storage, under a name that the driver has chosen and looks for when the job fails.
"""

from __future__ import annotations

import json
import logging
import uuid

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.worker.reports import TaskFailure

log = logging.getLogger(__name__)


def new_failure_key(fingerprint: str) -> str:
    """A key of its own for the failure of an attempt at a stage, beside what the stage writes."""
    return layout.shuffle_file(fingerprint, f"failure-{uuid.uuid4().hex[:12]}.json")


def keep_failure(store: ObjectStore, key: str, error: BaseException) -> None:
    """Leave a failure for the driver, unless another task was first; a store may refuse it."""
    try:
        store.put_if_absent(key, json.dumps(vars(TaskFailure.of(error))).encode())
    except StorageError:
        log.warning("the failure of a task could not be kept", exc_info=True)


def take_failure(store: ObjectStore, key: str) -> TaskFailure | None:
    """The failure that a task has left, which is removed; None if there is none."""
    try:
        values = json.loads(store.read_bytes(key))
        store.delete([key])
    except ObjectMissingError:
        return None
    except (StorageError, ValueError):
        log.warning("the failure of a task could not be read", exc_info=True)
        return None
    return TaskFailure(kind=values["kind"], args=tuple(values["args"]))
