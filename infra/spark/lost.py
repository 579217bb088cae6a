"""Tells errors that come from a Spark which has ended from all others.

A server that was started anew knows no session any more, and a JVM that was killed does not answer:
whatever is asked of them fails, in or between jobs, each time with another error of pyspark's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from stagecoach.infra.errors import SparkLostError
from stagecoach.infra.spark.session import forget_session, known_session
from stagecoach.infra.spark.session_kinds import has_ended, is_connect

if TYPE_CHECKING:
    from stagecoach.infra.config.settings import EngineSettings

# What Spark Connect says where the server was started anew, or does not answer.
_LOST_SERVER = (
    "SESSION_CHANGED",
    "SESSION_NOT_FOUND",
    "SESSION_CLOSED",
    "NO_ACTIVE_SESSION",
    "UNAVAILABLE",
)

ENDED = (
    "Spark, which this process had started, has ended: its JVM was killed, or the cluster has "
    "given the application up; the next try starts it anew"
)
"""Of a classic session."""


def names_lost_server(error: BaseException) -> bool:
    """Whether an error says that the Connect server, or the session on it, is gone."""
    text = f"{error} {error.__cause__}"
    return any(word in text for word in _LOST_SERVER)


def _of_connect(error: PySparkException) -> bool:
    """Whether a client of Spark Connect raised an error; a warm Spark has no `remote`."""
    return type(error).__module__ == "pyspark.errors.exceptions.connect"


def lost_spark(error: Exception, settings: EngineSettings) -> SparkLostError | None:
    """The error of ours if it was raised because Spark is gone; then the next session is another.

    Args:
        error: Anything that a stage raises.
        settings: Of the run.
    """
    session = known_session(settings)
    if session is not None and not is_connect(session):
        return SparkLostError(ENDED) if has_ended(session) else None
    if not names_lost_server(error):
        return None
    if session is not None:
        forget_session(session)
    elif not (isinstance(error, PySparkException) and (settings.remote or _of_connect(error))):
        return None
    reason = str(error).partition("\n")[0]
    return SparkLostError(
        f"the Spark Connect server at {settings.remote} was started anew or does not answer; the "
        f"next try connects anew: {reason}"
    )
