"""Errors of running a stage: in, what failed and where; out, one line and whether a retry can help.

Worker code: importable on Spark executors.
"""

from __future__ import annotations

from planner.errors import StagecoachError


class ConfigError(StagecoachError):
    """A setting, a file of settings or the machine itself is not as a run needs it."""


class StorageError(StagecoachError):
    """Object storage refused or failed a request; often passing, so a retry can help."""

    retryable = True


class StorageRefusedError(StorageError):
    """Object storage refuses a request and will again: no access, no bucket, wrong credentials."""

    retryable = False


class ShuffleReadError(StagecoachError):
    """Shuffle data of an upstream stage is missing, short or corrupt.

    A retry of the reading stage finds the same file: the upstream stage must run again.

    Args:
        stage: Name of the upstream stage that wrote the data.
        task: Number of the upstream task, counted from 0.
        partition: Number of the partition that was read, or None for the whole file.
        uri: The file.
        problem: What was found there instead of the data.
    """

    def __init__(
        self, stage: str, task: int, partition: int | None, uri: str, problem: str = "not found"
    ) -> None:
        # All of them in `args`, so that the error survives pickling on its way from an executor.
        super().__init__(stage, task, partition, uri, problem)
        self.stage = stage
        self.task = task
        self.partition = partition
        self.uri = uri
        self.problem = problem

    def __str__(self) -> str:
        part = "" if self.partition is None else f", partition {self.partition}"
        return (
            f"lost output of {self.stage} (task {self.task}{part}): {self.uri}: {self.problem}; "
            f"run {self.stage} again"
        )


class TaskFailedError(StagecoachError):
    """A task of a stage failed on its last attempt, for a reason that is not the user's SQL.

    Args:
        stage: Name of the stage.
        task: Number of the task, counted from 0, or None where the engine does not say.
        problem: The last attempt's error, in one line.
    """

    retryable = True

    def __init__(self, stage: str, task: int | None, problem: str) -> None:
        super().__init__(stage, task, problem)
        self.stage = stage
        self.task = task
        self.problem = problem

    def __str__(self) -> str:
        place = self.stage if self.task is None else f"{self.stage}, task {self.task}"
        return f"{place} failed: {self.problem}"
