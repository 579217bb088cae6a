"""The program of a warm Spark Connect server: in, Spark's configuration; out, the service.

    spark-submit --properties-file … connect_app.py

Spark's own `SparkConnectServer` isolates the artifacts of every session, whatever its configuration
says: each session, so each run, then starts a Python worker of its own and compiles all generated
code again, which is most of the time of a small run. The plugin `SparkConnectPlugin`, in that
configuration, starts the same service and leaves it to it.
"""

from __future__ import annotations

import os
import time

_POLL_SECONDS = 1.0


def main() -> None:
    """Start Spark, and with it the service; end with the JVM."""
    from pyspark.sql import SparkSession

    jvm = os.getppid()
    SparkSession.builder.getOrCreate()
    while os.getppid() == jvm:
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    main()
