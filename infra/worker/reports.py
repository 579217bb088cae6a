"""What a task did: its report, and its failure as data.

Worker code. An error's class stays a class all the way to the driver; it is never read out of a
message.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.errors import (
    CredentialsError,
    ExecutorError,
    FunctionError,
    InputLostError,
    QueryError,
    ShuffleReadError,
    StorageError,
    StorageRefusedError,
    TaskFailedError,
)
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.shuffle.manifest import ManifestError
from stagecoach.infra.shuffle.map_file import MapFile
from stagecoach.infra.storage import secrets
from stagecoach.planner.errors import StagecoachError


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """What a trial showed.

    Args:
        rows: Rows that reached the aggregate.
        groups: Groups among them.
        share: Groups per row that all rows of the task are expected to have.
        passed: Whether the task passed its rows on.
        seconds: How long the trial took.
    """

    rows: int
    groups: int
    share: float
    passed: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class TaskFailure:
    """An error as data.

    Args:
        kind: Its class, one of those that the driver acts on, else `other`.
        args: Arguments that make the error again.
    """

    kind: str
    args: tuple[Any, ...]

    @classmethod
    def of(cls, error: BaseException) -> TaskFailure:
        """The failure that an exception stands for."""
        for kind, known in _KINDS.items():
            if isinstance(error, known):
                return cls(kind=kind, args=_arguments(error))
        text = secrets.redact(str(error)) or type(error).__name__
        message = text if isinstance(error, StagecoachError) else f"{type(error).__name__}: {text}"
        if isinstance(error, OSError | MemoryError):
            message += _place()
        return cls(kind="other", args=(message,))

    def to_error(self, stage: str, task_index: int | None) -> StagecoachError:
        """The error to raise in the driver."""
        if self.kind == "other":
            return TaskFailedError(stage, task_index, str(self.args[0]))
        return _KINDS[self.kind](*self.args)


@dataclass(frozen=True, kw_only=True)
class TaskReport:
    """What a task did.

    Args:
        task_index: Which task.
        attempt: Token of the attempt.
        file: The map file; None where the task failed.
        failure: Why it failed; None where it did not.
        rows_in: Rows read of each input.
        bytes_in: Stored bytes read of each input, where they are known.
        engine_seconds: Scan and computation.
        read_seconds: Reading shuffle inputs.
        write_seconds: Partitioning and writing.
        total_seconds: From start to end.
        started_at: When it started by its machine's clock, seconds since 1970; 0 if unknown.
        peak_memory_bytes: Highest resident memory that this worker process ever had.
        host: Machine that ran it.
        pid: Process that ran it.
        log: What it logged, and the traceback of its failure.
        trial: What it found out before it chose a form of the fragment, if it tried.
    """

    task_index: int
    attempt: str
    file: MapFile | None = None
    failure: TaskFailure | None = None
    rows_in: tuple[int, ...] = ()
    bytes_in: tuple[int, ...] = ()
    engine_seconds: float = 0.0
    read_seconds: float = 0.0
    write_seconds: float = 0.0
    total_seconds: float = 0.0
    started_at: float = 0.0
    peak_memory_bytes: int = 0
    host: str = ""
    pid: int = 0
    log: tuple[str, ...] = ()
    trial: TrialResult | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        return {
            **vars(self),
            "file": None if self.file is None else self.file.to_dict(),
            "failure": None if self.failure is None else vars(self.failure),
            "trial": None if self.trial is None else vars(self.trial),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TaskReport:
        """The report that `to_dict` described."""
        changed = dict(values)
        for name in ("rows_in", "bytes_in", "log"):
            changed[name] = tuple(values[name])
        if values.get("trial") is not None:
            changed["trial"] = TrialResult(**values["trial"])
        if values["file"] is not None:
            changed["file"] = MapFile.from_dict(values["file"])
        if values["failure"] is not None:
            failure = values["failure"]
            changed["failure"] = TaskFailure(**{**failure, "args": tuple(failure["args"])})
        return cls(**changed)


# In order: a class before those that it descends from.
_KINDS: dict[str, type[StagecoachError]] = {
    "query": QueryError,
    "function": FunctionError,
    "damaged": DamagedFileError,
    "input_lost": InputLostError,
    "manifest_lost": ManifestError,
    "shuffle_lost": ShuffleReadError,
    "environment": ExecutorError,
    "credentials": CredentialsError,
    "storage_refused": StorageRefusedError,
    "storage": StorageError,
}


_ADVICE = (
    "give its executors credentials of their own, or send the driver's (`credentials: forward`)"
)


def _arguments(error: BaseException) -> tuple[Any, ...]:
    if isinstance(error, ManifestError):
        return (error.stage, error.uri, error.problem)
    if isinstance(error, ShuffleReadError | InputLostError | DamagedFileError | FunctionError):
        return error.args
    if isinstance(error, StorageError):
        advice = f": {_ADVICE}" if isinstance(error, CredentialsError) else ""
        return (f"{error}{_place()}{advice}",)
    return (str(error),)


def _place() -> str:
    """Where it happened: each machine may have a network, a disk and credentials of its own."""
    return f"; this is on machine {socket.gethostname()}, in a task"
