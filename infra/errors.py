"""Errors of infra: what failed, where, and whether a retry can help.

Worker code: the errors travel from executors as data (class name and arguments), and the driver
acts on the class. Nothing parses a message.
"""

from __future__ import annotations

from stagecoach.planner.errors import StagecoachError

_DOCTOR = "`stagecoach doctor`, with the options of this run, looks at Spark, executors and storage"


def with_doctor(text: str, error: BaseException) -> str:
    """Return a text about an error, with a line that names the doctor where it looks at the cause.

    Args:
        text: What is shown of the error.
        error: The error.
    """
    examined = isinstance(error, StagecoachError) and error.examined
    return f"{text}\n{_DOCTOR}" if examined else text


class ConfigError(StagecoachError):
    """A setting, a file of settings or the machine itself is not as a run needs it."""


class ExecutorError(ConfigError):
    """A machine that runs tasks lacks something, or has another version of it."""

    examined = True


class SparkUnavailableError(ConfigError):
    """Spark cannot be started here, or does not answer."""

    examined = True


class SparkLostError(SparkUnavailableError):
    """Spark has ended or has lost its executors; the next session that is asked for is another."""

    retryable = True


class ServerIdleError(SparkUnavailableError):
    """A Spark Connect server runs no tasks, which needs somebody to give it room or restart it."""


class StorageError(StagecoachError):
    """Object storage refused or failed a request; often passing, so a retry can help."""

    retryable = True
    examined = True


class StorageRefusedError(StorageError):
    """Object storage refuses a request and will again: no access, no bucket, wrong credentials."""

    retryable = False


class CredentialsError(StorageRefusedError):
    """There are no credentials for object storage, or they are wrong or have expired."""


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


class QueryError(StagecoachError):
    """An engine refused the fragment, or raised on its data; another engine may not."""


class InputLostError(StagecoachError):
    """A file of a table is gone, is damaged, or is no longer what the snapshot says.

    Args:
        uri: The file.
        problem: What was found instead.
        is_stored: Whether Stagecoach wrote the file for good, so that a new snapshot would name it
            again.
        table: The table, where it is known.
    """

    def __init__(self, uri: str, problem: str, is_stored: bool = False, table: str = "") -> None:
        # All of them in `args`, so that the error survives its way from an executor.
        super().__init__(uri, problem, is_stored, table)
        self.uri = uri
        self.problem = problem
        self.is_stored = is_stored
        self.table = table

    def of_table(self, table: str) -> InputLostError:
        """The same error with the table's name."""
        return InputLostError(self.uri, self.problem, self.is_stored, table)

    def __str__(self) -> str:
        of_table = f" of table '{self.table}'" if self.table else ""
        if self.is_stored:
            return (
                f"file {self.uri}{of_table} cannot be read: {self.problem}; Stagecoach wrote it "
                "and never changes it, so restore it from a backup, or write the table again"
            )
        return (
            f"file {self.uri}{of_table} of the run's snapshot cannot be read: {self.problem}; "
            "start a new run, which takes a new snapshot"
        )


class QueryFailedError(StagecoachError):
    """Spark itself refuses the whole query: the user's own error, in Spark's words.

    Args:
        query: Name of the query.
        condition: Spark's error class, such as `DIVIDE_BY_ZERO`, or its exception's name.
        text: Spark's message; its first line can be read by itself.
    """

    def __init__(self, query: str, condition: str, text: str) -> None:
        super().__init__(query, condition, text)
        self.query = query
        self.condition = condition
        self.text = text

    def __str__(self) -> str:
        return self.text


class FunctionError(StagecoachError):
    """The code of a function of the project cannot be used where it is needed.

    Args:
        function: Name of the function.
        python: Where its code is, as `module:attribute`.
        problem: What is wrong.
    """

    def __init__(self, function: str, python: str, problem: str) -> None:
        super().__init__(function, python, problem)
        self.function = function
        self.python = python
        self.problem = problem

    def __str__(self) -> str:
        return f"function '{self.function}' ({self.python}) cannot be used: {self.problem}"


class StageCanceledError(StagecoachError):
    """Somebody interrupted the stage's Spark job."""
