"""How a fragment can fail: in, an engine's error; out, a class that says who can do something.

Worker code. The classes travel from executors as data (their name and text), never as parsed text.
"""

from __future__ import annotations

from planner.errors import StagecoachError


class QueryError(StagecoachError):
    """An engine refused the fragment, or raised on its data; another engine may not."""


class InputLostError(StagecoachError):
    """A file of a base table is gone or is no longer what the snapshot says.

    Args:
        uri: The file.
        problem: What was found instead.
    """

    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(uri, problem)
        self.uri = uri
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"file {self.uri} of the run's snapshot cannot be read: {self.problem}; "
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
