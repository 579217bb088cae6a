"""Looks whether Spark can be reached and started, and whether its version is the driver's."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stagecoach.doctor.findings import Finding, error, ok
from stagecoach.doctor.patience import within
from stagecoach.doctor.place import Place
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError, SparkUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_SECONDS = 3.0
_GRPC_SECONDS = 15.0
# A master that does not answer is given up after 60 s by Spark itself.
_START_SECONDS = 90.0
_SILENT = "somebody listens there, but has not answered as Spark does"
_PORTS = {"spark": 7077, "sc": 15002}


class SparkCheck:
    """The cluster or server, and a session on it."""

    name = "spark"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield whether there is a Spark, and leave a session to later checks."""
        settings = place.settings
        ours = version("pyspark")
        target = settings.remote or settings.master
        if problem := unreachable(settings):
            yield error(
                problem,
                "start it, or correct --remote"
                if settings.remote
                else "start the master, or correct --master",
            )
            return
        from pyspark.errors import PySparkException

        try:
            if settings.remote:
                _await_grpc(settings.remote)
            spark, theirs = within(_START_SECONDS, lambda: _started(settings), _SILENT, _nothing)
        except (ConfigError, PySparkException) as problem:
            first = str(problem).strip().splitlines()[0]
            yield error(f"Spark cannot be used: {first}", f"look at the log of {_plain(target)}")
            return
        if difference := other_version(ours, theirs):
            yield error(difference, f"install the same on both: pip install pyspark=={theirs}")
            return
        place.spark = spark
        yield ok(f"Spark {theirs} at {_plain(target)}")


def _await_grpc(remote: str) -> None:
    """Return when a Connect server speaks its protocol; pyspark would try for ten minutes.

    Raises:
        SparkUnavailableError: It does not in time.
    """
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(_GRPC_SECONDS)
    except grpc.FutureTimeoutError:
        raise SparkUnavailableError(f"{_SILENT} within {_GRPC_SECONDS:g} s") from None
    finally:
        channel.close()


def _started(settings: EngineSettings) -> tuple[SparkSession, str]:
    from stagecoach.infra.spark.session import get_session

    spark = get_session(settings)
    return spark, spark.version


def _nothing() -> None:
    """A session that is still being started cannot be stopped; the process ends soon."""


def unreachable(settings: EngineSettings) -> str | None:
    """Return why nothing answers at the address of the cluster or server; None if it does.

    Args:
        settings: Name it.
    """
    for address in _addresses(settings):
        try:
            socket.create_connection(address, _CONNECT_SECONDS).close()
        except OSError as problem:
            host, port = address
            text = f"nothing answers at {host}:{port}: {problem.strerror or problem}"
        else:
            return None
    return text if _addresses(settings) else None


def other_version(ours: str, theirs: str) -> str | None:
    """Return in what two versions of Spark differ; None if they can work together."""
    if ours.split(".")[:2] == theirs.split(".")[:2]:
        return None
    return f"the driver has pyspark {ours}, Spark is {theirs}"


def _addresses(settings: EngineSettings) -> list[tuple[str, int]]:
    """Where a cluster listens, as far as its URL says so; a standalone one may have masters."""
    target = settings.remote or settings.master
    if not re.match(r"(spark|sc)://", target):
        return []
    found = []
    scheme, _, rest = target.split(";", 1)[0].partition("://")
    for part in rest.split(","):
        split = urlsplit(f"//{part}")
        found.append((split.hostname or "", split.port or _PORTS[scheme]))
    return found


def _plain(target: str) -> str:
    """An address without the token behind it."""
    return target.split(";", 1)[0].rstrip("/")
