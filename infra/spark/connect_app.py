"""The program of a warm Spark Connect server, whose sessions refuse all but queries.

    spark-submit --properties-file … connect_app.py

Spark's own `SparkConnectServer` isolates the artifacts of every session, whatever its configuration
says: each session, so each run, then starts a Python worker of its own and compiles all generated
code again, which is most of the time of a small run. This program starts the same service and
leaves it to the configuration.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 1.0


def start_service(session: SparkSession) -> None:
    """Have the Spark of a classic session serve clients of Spark Connect, under its configuration.

    From now on the session, of which those of the clients are made, refuses all but queries.
    """
    from stagecoach.infra.spark.guard.plan_guard import install_guard

    install_guard(session)
    context = session.sparkContext
    jvm: Any = context._jvm
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context._jsc.sc())


def main() -> None:
    """Start Spark, and with it the service; end with the JVM."""
    from pyspark.sql import SparkSession

    jvm = os.getppid()
    start_service(SparkSession.builder.getOrCreate())
    while os.getppid() == jvm:
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    main()
