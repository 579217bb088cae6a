"""Writes one part of the table that a result becomes, in a task of its own.

Worker code: runs on a Spark executor or, for a small result, in the driver alike.

    map files of the head stage ─▶ rows of the result ─▶ files of the table
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stagecoach.infra.formats.publishing import (
    PublishError,
    WritePlan,
    plan_from_dict,
    plan_to_dict,
)
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import ManifestError
from stagecoach.infra.shuffle.reader import read_partitions
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.sealed import PropertyReader, opened
from stagecoach.infra.storage.stores import store_from_dict
from stagecoach.infra.worker.reports import TaskFailure
from stagecoach.planner.errors import StagecoachError

log = logging.getLogger(__name__)

_PUBLISH = "publish"


@dataclass(frozen=True, kw_only=True)
class WriteTask:
    """Some map files of a head stage's output, to be written as files of a table.

    Attributes:
        store: The object store as `ObjectStore.to_dict` describes it; may hold secrets.
        fingerprint: The output.
        manifest_hash: Which commit of it.
        stage: Name of the stage, for messages.
        first_file: Position of the first map file.
        end_file: Position after the last one.
        task_index: 0-based number of the task.
        plan: How its files are written.
        writes_empty: Whether a file is written even if there are no rows.
    """

    store: Mapping[str, Any] = field(repr=False)
    fingerprint: str
    manifest_hash: str
    stage: str
    first_file: int
    end_file: int
    task_index: int
    plan: WritePlan
    writes_empty: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        return {**vars(self), "plan": plan_to_dict(self.plan)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], read: PropertyReader | None = None) -> WriteTask:
        """The task that `to_dict` described.

        Args:
            values: Plain data, whose store may be sealed.
            read: Reads the property with which it is opened.

        Raises:
            StorageRefusedError: The store cannot be opened.
        """
        plan, store = plan_from_dict(values["plan"]), opened(values["store"], read)
        return cls(**{**values, "plan": plan, "store": store})


@dataclass(frozen=True, kw_only=True)
class WriteReport:
    """What a task wrote.

    Attributes:
        task_index: Which task.
        files: Its files as the plan describes them, in the order of their rows.
        failure: Why it failed, or None.
    """

    task_index: int
    files: tuple[Mapping[str, Any], ...] = ()
    failure: TaskFailure | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        return {
            "task_index": self.task_index,
            "files": list(self.files),
            "failure": None if self.failure is None else vars(self.failure),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> WriteReport:
        """The report that `to_dict` described."""
        failure = values["failure"]
        if failure is not None:
            failure = TaskFailure(**{**failure, "args": tuple(failure["args"])})
        return cls(task_index=values["task_index"], files=tuple(values["files"]), failure=failure)

    def error(self, stage: str) -> StagecoachError | None:
        """The error to raise in the driver, or None."""
        if self.failure is None:
            return None
        if self.failure.kind == _PUBLISH:
            return PublishError(*self.failure.args)
        return self.failure.to_error(stage, self.task_index)


def run_write_task(task: WriteTask, attempt: int = 0) -> WriteReport:
    """Write the files of a task.

    Args:
        task: What to do.
        attempt: Number of the try; files have names of their own whatever it is.

    Returns:
        The report. A failure is in the report and not raised, so that its class survives the way
        through Spark. What a failed attempt has written belongs to no version, so gc removes it.
    """
    try:
        return WriteReport(task_index=task.task_index, files=tuple(_write(task, attempt)))
    except PublishError as error:
        failure = TaskFailure(kind=_PUBLISH, args=(str(error),))
    except Exception as error:
        log.debug("table %s, task %d failed", task.plan.table, task.task_index, exc_info=True)
        failure = TaskFailure.of(error)
    return WriteReport(task_index=task.task_index, failure=failure)


def _write(task: WriteTask, attempt: int) -> list[dict[str, Any]]:
    store = store_from_dict(task.store)
    manifest = load_manifest(store, task.fingerprint, stage=task.stage, expected=True)
    if manifest is None or manifest.manifest_hash != task.manifest_hash:
        problem = "not found" if manifest is None else "replaced by another commit since"
        raise ManifestError(task.stage, store.uri(layout.manifest(task.fingerprint)), problem)
    files = range(task.first_file, task.end_file)
    _, batches = read_partitions(store, manifest, 0, manifest.num_partitions, files=files)
    return task.plan.write_reported(
        store,
        batches,
        task_index=task.task_index,
        attempt=attempt,
        writes_empty=task.writes_empty,
    )
