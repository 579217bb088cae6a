"""How a fragment can fail: in, an engine's error; out, a class that says who can do something.

Worker code. The classes travel from executors as data (their name and text), never as parsed text.
"""

from __future__ import annotations

from planner.errors import StagecoachError


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


class StageCanceledError(StagecoachError):
    """Somebody interrupted the stage's Spark job."""
