"""What tasks of publishing have in common: what they read, and how they tell what they did.

Worker code: runs on a Spark executor or, for little data, in the driver alike.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.shuffle.reader import read_partitions
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.sealed import PropertyReader, opened
from stagecoach.infra.storage.stores import store_from_dict
from stagecoach.infra.worker.reports import TaskFailure
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.registry import load

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_PUBLISH = "publish"


@dataclass(frozen=True, kw_only=True)
class StageOutput:
    """The committed output of a head stage.

    Attributes:
        fingerprint: Which output.
        manifest_hash: Which commit of it.
        stage: Name of the stage, for messages.
    """

    fingerprint: str
    manifest_hash: str
    stage: str

    @classmethod
    def of(cls, manifest: Manifest) -> StageOutput:
        """The output that a manifest commits."""
        return cls(
            fingerprint=manifest.fingerprint,
            manifest_hash=manifest.manifest_hash,
            stage=manifest.stage_name,
        )

    def batches(
        self, store: ObjectStore, files: range | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield its rows.

        Args:
            store: The storage root.
            files: Positions of the map files; all by default.
            columns: Names of the columns; all by default.

        Raises:
            ManifestError: It is gone, or another commit took its place.
            ShuffleReadError: Rows are lost.
        """
        found = load_manifest(store, self.fingerprint, stage=self.stage, expected=True)
        if found is None or found.manifest_hash != self.manifest_hash:
            problem = "not found" if found is None else "replaced by another commit since"
            raise ManifestError(self.stage, store.uri(layout.manifest(self.fingerprint)), problem)
        _, batches = read_partitions(
            store, found, 0, found.num_partitions, files=files, columns=columns
        )
        return batches


@dataclass(frozen=True, kw_only=True)
class PublishTask(ABC):
    """A part of a publication.

    Attributes:
        store: The storage root as `ObjectStore.to_dict` describes it; may hold secrets.
        output: The rows that are published.
        task_index: 0-based number of the task.
    """

    store: Mapping[str, Any] = field(repr=False)
    output: StageOutput
    task_index: int

    @abstractmethod
    def work(self, store: ObjectStore, attempt: int) -> Iterable[Mapping[str, Any]]:
        """Do it, and tell what was done as plain data.

        Args:
            store: The storage root, opened.
            attempt: Number of the try.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {**vars(self), "output": vars(self.output)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the task that `to_dict` described."""
        return cls(**{**values, "output": StageOutput(**values["output"])})


def task_to_dict(task: PublishTask) -> dict[str, Any]:
    """Return plain data for `task_from_dict`."""
    cls = type(task)
    return {"class": f"{cls.__module__}:{cls.__qualname__}", "values": task.to_dict()}


def task_from_dict(values: Mapping[str, Any], read: PropertyReader | None = None) -> PublishTask:
    """Return the task that `task_to_dict` described.

    Args:
        values: Plain data, whose store may be sealed.
        read: Reads the property with which it is opened.

    Raises:
        StorageRefusedError: The store cannot be opened.
    """
    cls = load(values["class"])
    if not (isinstance(cls, type) and issubclass(cls, PublishTask)):
        raise TypeError(f"{values['class']} is not a PublishTask")
    plain = values["values"]
    return cls.from_dict({**plain, "store": opened(plain["store"], read)})


@dataclass(frozen=True, kw_only=True)
class PublishReport:
    """What a task did.

    Attributes:
        task_index: Which task.
        found: What it tells.
        failure: Why it failed, or None.
    """

    task_index: int
    found: tuple[Mapping[str, Any], ...] = ()
    failure: TaskFailure | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {
            "task_index": self.task_index,
            "found": list(self.found),
            "failure": None if self.failure is None else vars(self.failure),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PublishReport:
        """Return the report that `to_dict` described."""
        failure = values["failure"]
        if failure is not None:
            failure = TaskFailure(**{**failure, "args": tuple(failure["args"])})
        return cls(task_index=values["task_index"], found=tuple(values["found"]), failure=failure)

    def error(self, stage: str) -> StagecoachError | None:
        """Return the error to raise in the driver, or None."""
        if self.failure is None:
            return None
        if self.failure.kind == _PUBLISH:
            return PublishError(*self.failure.args)
        return self.failure.to_error(stage, self.task_index)


def run_publish_task(task: PublishTask, attempt: int = 0) -> PublishReport:
    """Run a task.

    Args:
        task: What to do.
        attempt: Number of the try; files have names of their own whatever it is.

    Returns:
        The report. A failure is in the report and not raised, so that its class survives the way
        through Spark. What a failed attempt has written belongs to no version, so gc removes it.
    """
    try:
        found = tuple(task.work(store_from_dict(task.store), attempt))
        return PublishReport(task_index=task.task_index, found=found)
    except PublishError as error:
        failure = TaskFailure(kind=_PUBLISH, args=(str(error),))
    except Exception as error:
        log.debug("%s: task %d failed", task.output.stage, task.task_index, exc_info=True)
        failure = TaskFailure.of(error)
    return PublishReport(task_index=task.task_index, failure=failure)
