"""What a Spark session is: of which kind, and whether it can run jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_local(master: str) -> bool:
    """Whether executors of a master are processes of this machine that this one starts."""
    return master == "local" or master.startswith(("local[", "local-cluster"))


def is_connect(session: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def is_alive(session: SparkSession) -> bool:
    """Whether the session can still run jobs."""
    return not is_stopped(session) and not has_ended(session)


def is_stopped(session: SparkSession) -> bool:
    """Whether the session was stopped in this process."""
    if is_connect(session):
        return bool(getattr(session, "is_stopped", False))
    return session.sparkContext._jsc is None


def has_ended(session: SparkSession) -> bool:
    """Whether a classic session has ended though nobody has stopped it here.

    Its JVM was killed, or the cluster has given the application up.
    """
    if is_connect(session) or (context := session.sparkContext._jsc) is None:
        return False
    try:
        return bool(context.sc().isStopped())
    except (Py4JError, OSError):
        return True
