"""Starts the classic Spark of this process.

It is bound to the loopback address when its master is local.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.host.import_path import dropping_import_caches
from stagecoach.infra.host.variables import variable_set
from stagecoach.infra.spark.class_data import archive_options
from stagecoach.infra.spark.code_archive import code_zip
from stagecoach.infra.spark.connect_conf import package_root, properties_file
from stagecoach.infra.spark.java import ensure_java
from stagecoach.infra.spark.java_options import java_options_set
from stagecoach.infra.spark.jvm import start_session
from stagecoach.infra.spark.kept_status import without_ui
from stagecoach.infra.spark.safe_conf import REDACTED_CONF, SAFE_CONF
from stagecoach.infra.spark.session_kinds import is_alive, is_connect, is_local
from stagecoach.infra.spark.worker_daemon import MODULE as DAEMON_MODULE
from stagecoach.infra.spark.worker_memory import executor_conf
from stagecoach.infra.storage.masking import masked

log = logging.getLogger(__name__)

FAIR_POOLS = Path(__file__).with_name("fair_pools.xml")
"""How the stages of all runs share a cluster, as Spark's fair scheduler reads it."""

# What pyspark sets in this process when it connects, and a classic session must not find.
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"


def start_classic(settings: EngineSettings) -> SparkSession:
    """Return the classic session of this process; it is started if there is none.

    Raises:
        ConfigError: This process runs Spark with another master already.
        SparkUnavailableError: Spark cannot start.
    """
    # Of a warm Spark that is gone.
    os.environ.pop(_CONNECT_MODE, None)
    running = SparkSession.getActiveSession()
    if running is not None and not is_connect(running) and is_alive(running):
        if running.sparkContext.master != settings.master:
            raise ConfigError(
                f"this process runs Spark with master '{running.sparkContext.master}' already; "
                f"master '{settings.master}' needs another process"
            )
        return running
    home = ensure_java()
    if is_local(settings.master):
        _export_code_path()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:  # executors have a Python of their own; ours may not even exist there
        os.environ.setdefault("PYSPARK_PYTHON", "python3")
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    log.info("starting Spark with master %s", settings.master)
    conf = configuration(settings)
    if settings.master.startswith("local-cluster") and (options := archive_options(home)):
        # Its executors are JVMs of this machine, too.
        conf["spark.executor.defaultJavaOptions"] = options
    conf |= settings.spark_conf
    shown = masked(conf)
    secret = {name: value for name, value in conf.items() if shown[name] != value}
    public = {name: value for name, value in conf.items() if name not in secret}
    public |= {**REDACTED_CONF, "spark.master": settings.master, "spark.app.name": "stagecoach"}
    with _read_from_file(secret), java_options_set(home):
        session = start_session(public)
    if not is_local(settings.master):
        dropping_import_caches(lambda: session.sparkContext.addPyFile(str(code_zip())))
    return session


@contextmanager
def _read_from_file(conf: Mapping[str, str]) -> Iterator[None]:
    """Have a JVM that starts in the block read these values where only we and it can.

    pyspark would make them arguments of the JVM, which every user of the machine may read.
    """
    if not conf:
        yield
        return
    variable = "PYSPARK_SUBMIT_ARGS"
    given = os.environ.get(variable) or "pyspark-shell"
    with properties_file(conf, tempfile.gettempdir()) as file:
        arguments = f"--properties-file {shlex.quote(file)} --load-spark-defaults"
        with variable_set(variable, f"{arguments} {given}"):
            yield


def configuration(settings: EngineSettings) -> dict[str, str]:
    """Return what Spark is started with, without the settings of the user."""
    conf = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": settings.time_zone,
        "spark.python.unix.domain.socket.enabled": "true",
        # It is a variable of workers: DataFrames and RDDs would not share them.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Errors reach the user as exceptions; Spark would log each with its stack as well.
        "spark.log.level": "FATAL",
        "spark.sql.warehouse.dir": os.path.join(settings.spill_folder, "warehouse"),
        **SAFE_CONF,
        **executor_conf(),
        **without_ui(settings.spark_conf),
    }
    if is_local(settings.master):
        conf["spark.executorEnv.PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
        conf["spark.python.daemon.module"] = DAEMON_MODULE
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        # 200 partitions are for a cluster; AQE joins them, but writing them costs.
        conf["spark.sql.shuffle.partitions"] = str(max(2 * (os.cpu_count() or 1), 8))
    else:
        # By default all tasks of one stage go before those of the next, however few these are.
        conf["spark.scheduler.mode"] = "FAIR"
        conf["spark.scheduler.allocation.file"] = FAIR_POOLS.as_uri()
    return conf


def _export_code_path() -> None:
    """Let the Python workers of this machine import our packages from where we did."""
    folders = [str(package_root().parent)]
    present = [f for f in os.environ.get("PYTHONPATH", "").split(os.pathsep) if f]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*folders, *present]))
