"""Starts the Python workers of a Spark on this machine, as pyspark's own daemon does, but sooner.

Spark puts an archive of pyspark in front of Python's path, from which every module is compiled anew
by each process. Driver and workers of one machine have the same installation, whose modules are
compiled already.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatch

MODULE = "stagecoach.infra.spark.worker_daemon"
"""For the setting `spark.python.daemon.module`."""

_ARCHIVES = ("*/pyspark.zip", "*/py4j-*-src.zip")


def main() -> None:
    """Serve Spark's requests for workers until it ends."""
    sys.path = [entry for entry in sys.path if not any(fnmatch(entry, a) for a in _ARCHIVES)]
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
