"""The Spark session of a process, classic or Connect.

Classic Spark starts in this process (`classic_session`), unless a warm Spark of the same user runs
on this machine and computes the same (`warm_client`). A Connect server is somebody else's process,
so our packages are shipped to it as a zip file, unless it says (as a warm server does) that its
Python workers import the same code.
"""

from __future__ import annotations

import atexit
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.host.ending import is_command
from stagecoach.infra.host.import_path import dropping_import_caches
from stagecoach.infra.spark.classic_session import start_classic
from stagecoach.infra.spark.code_archive import code_zip
from stagecoach.infra.spark.connect_conf import (
    CODE_CONF,
    SLOTS_CONF,
    code_digest,
)
from stagecoach.infra.spark.connect_server import await_server, is_up
from stagecoach.infra.spark.safe_conf import apply_safe_conf
from stagecoach.infra.spark.session_kinds import (
    has_ended,
    is_alive,
    is_connect,
    is_local,
    is_stopped,
)
from stagecoach.infra.spark.warm_client import WarmUse, use_warm_server

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

log = logging.getLogger(__name__)

_lock = threading.Lock()
_sessions: dict[str, SparkSession] = {}
_slots: dict[str, int] = {}
# Times by `time.perf_counter`: when each session was opened, and when this thread last got one.
_opened: dict[str, float] = {}
_got = threading.local()
# Why sessions that nobody has asked for yet could not be started.
_failures: dict[str, Exception] = {}
# Connect sessions on a server whose workers import our code by themselves, by session id.
_with_code: set[str] = set()
# Warm servers that are used instead of a Spark of this process, by session id.
_warm: dict[str, WarmUse] = {}

# How long a request to a warm server is tried again, which others can take the place of.
_WARM_SECONDS = 2.0
# Milliseconds between two tries at most, and tries until they are so far apart.
_BACKOFF = 1000
_QUICK_RETRIES = 3
# How long a JVM that does not answer any more may take to end.
_JVM_END_SECONDS = 5.0
_NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def get_session(settings: EngineSettings) -> SparkSession:
    """The process's session for these settings, started by the first caller.

    Raises:
        ConfigError: If this process runs classic Spark with another master already.
    """
    with _lock:
        if (failure := _failures.pop(_address(settings), None)) is not None:
            raise failure
        session = _session(settings)
        _got.at = time.perf_counter()
        return session


def known_session(settings: EngineSettings) -> SparkSession | None:
    """The process's session for these settings, if it has been started."""
    return _sessions.get(_address(settings))


def prepare_session(settings: EngineSettings) -> bool:
    """Start the session for a later `get_session`, which raises the error if it cannot be started.

    Returns:
        Whether there is a session now, and there was none.
    """
    with _lock:
        before = _sessions.get(_address(settings))
        try:
            return _session(settings) is not before
        except Exception as error:  # noqa: BLE001 -- raised where the session is asked for
            _failures[_address(settings)] = error
            return False


def forget_failure(settings: EngineSettings) -> None:
    """Forget that the session could not be prepared: nobody will ask for it."""
    with _lock:
        _failures.pop(_address(settings), None)


def _session(settings: EngineSettings) -> SparkSession:
    address = _address(settings)
    session = _sessions.get(address)
    if session is not None and _is_lost(session):
        log.warning("the warm Spark is gone")
        _forget(time.perf_counter())
        session = None
    if session is not None and has_ended(session):
        log.warning("Spark has ended by itself and is started anew")
        _stop_classic(session)
        session = None
    if session is None or is_stopped(session):
        for name in _NOISY_LOGGERS:
            # They print every error with its JVM stack as JSON, also those that we handle.
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
        session = _connect(settings) if settings.remote else _local(settings)
        _sessions[address] = session
        _opened[address] = time.perf_counter()
        _slots.pop(address, None)
    return session


def _address(settings: EngineSettings) -> str:
    return settings.remote or settings.master


def stop_sessions() -> None:
    """Stop every session that `get_session` started, but for what ends by itself."""
    with _lock:
        for address, session in _sessions.items():
            if is_connect(session):
                _release(session, _url(session, address))
            elif is_alive(session) and not _ends_by_itself(session):
                session.stop()
        _sessions.clear()
        _failures.clear()
        _slots.clear()
        _opened.clear()
        _with_code.clear()
        for used in _warm.values():
            used.hold.release()
        _warm.clear()


def _ends_by_itself(session: SparkSession) -> bool:
    """Whether its JVM ends well without being told: soon, when this process has ended.

    A JVM of this machine does, once its input is closed. With an event log, whoever reads it next
    must find it whole.
    """
    if not is_command() or not is_local(str(session.sparkContext.master)):
        return False
    return session.sparkContext.getConf().get("spark.eventLog.enabled", "false") == "false"


def forget_session(session: SparkSession) -> None:
    """Have the next `get_session` start or connect anew: the Spark of this session is gone.

    A session that was opened after this thread last got one is a replacement, because another
    stage has noticed before; it is kept.

    Args:
        session: Any session on it, isolated ones too. A classic one is stopped.
    """
    with _lock:
        if is_connect(session):
            _forget(getattr(_got, "at", time.perf_counter()))
        elif session.sparkContext._jsc is not None:
            _stop_classic(session)


def _forget(moment: float) -> None:
    """Forget the Connect sessions that were there at a moment."""
    for address, known in list(_sessions.items()):
        if is_connect(known) and _opened.get(address, 0.0) <= moment:
            del _sessions[address]
            _slots.pop(address, None)
            _with_code.discard(_session_id(known))
            if (used := _warm.pop(_session_id(known), None)) is not None:
                used.hold.release()
                # pyspark would give it to whoever asks for a session next.
                _close(known)


def _stop_classic(session: SparkSession) -> None:
    """Stop classic Spark, whether its JVM still runs or not; the next session may start another."""
    with suppress(Py4JError, OSError):
        session.stop()
        return
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_JVM_END_SECONDS)
            # pyspark gives up where the JVM cannot be told: the rest of it is in this process.
            session.sparkContext.stop()
            SparkContext._gateway = SparkContext._jvm = None
            SparkSession._instantiatedSession = SparkSession._activeSession = None


def _close(session: SparkSession) -> None:
    """Stop a Connect session without telling its server, which has ended."""
    # pyspark would try for ten minutes to tell it.
    cast("ConnectSession", session).release_session_on_close = False
    session.stop()


def _is_lost(session: SparkSession) -> bool:
    """Whether it is one of a warm server that has ended."""
    used = _warm.get(_session_id(session)) if is_connect(session) else None
    return used is not None and not is_up(used.url)


def task_slots(settings: EngineSettings) -> int:
    """Tasks that run at once: what the settings say, else what Spark says."""
    if settings.parallelism:
        return settings.parallelism
    address = _address(settings)
    slots = _slots.get(address)
    if slots is None:  # else who starts a job finds out whether Spark is still there
        session = get_session(settings)
        connected = is_connect(session)
        slots = _connect_slots(session) if connected else session.sparkContext.defaultParallelism
        _slots[address] = slots
    return slots


def task_threads(settings: EngineSettings) -> int:
    """Cores that one task may use: all, where Spark is on one machine, else `spark.task.cpus`."""
    if not settings.remote and (settings.master.startswith("local[") or settings.master == "local"):
        return task_slots(settings)
    session = get_session(settings)
    if settings.remote and (session.conf.get(SLOTS_CONF, "") or "").isdigit():  # a server of ours
        return task_slots(settings)
    return int(session.conf.get("spark.task.cpus", "1") or 1)


@contextmanager
def isolated_session(spark: SparkSession, time_zone: str) -> Iterator[SparkSession]:
    """A session of its own on the same Spark: views and configuration that no other thread sees.

    Args:
        spark: Any session of that Spark.
        time_zone: Session time zone, an IANA name.
    """
    session = spark.newSession()
    remote = is_connect(session)
    try:
        if remote:
            policies = cast("ConnectSession", spark).client.get_retry_policies()
            cast("ConnectSession", session).client.set_retry_policies(policies)
        session.conf.set("spark.sql.session.timeZone", time_zone)
        session.conf.set("spark.sql.ansi.enabled", "true")
        apply_safe_conf(session)
        if remote and _session_id(spark) not in _with_code:
            ship_code(session)
        yield session
    finally:
        # A classic session shares its SparkContext: stopping it would stop all.
        if remote:
            session.stop()


def ship_code(session: SparkSession) -> None:
    """Send our packages to the executors of a Connect server, for this session."""
    code = str(code_zip())
    try:
        dropping_import_caches(lambda: session.addArtifacts(code, pyfile=True))
    finally:
        # pyspark also adds it to the path of this process, which has our packages: with a session
        # for each stage, that path would grow without end. Another list, because an import in
        # another thread goes through this one by position.
        sys.path = [entry for entry in sys.path if entry != code]


def _local(settings: EngineSettings) -> SparkSession:
    """A session on a warm Spark of this machine, else on one of this process."""
    # A process with a JVM of its own cannot connect to another one.
    if settings.warm == "always" and SparkContext._active_spark_context is None:
        used = use_warm_server(settings)
        if used is not None:
            return _connect_warm(used)
    return start_classic(settings)


def _connect_warm(used: WarmUse) -> SparkSession:
    try:
        # As part of the address, and not in the environment, which other processes may inherit.
        session = _open(used.url, f"{used.url}/;token={used.token}")
    except BaseException:
        used.hold.release()
        raise
    _warm[_session_id(session)] = used
    _retry_for(session, _WARM_SECONDS)
    return session


def _retry_for(session: SparkSession, seconds: float) -> None:
    """Have requests to a server that does not answer tried again often, for about so long.

    By default pyspark tries for ten minutes, at last once a minute: a server that was started anew
    is noticed late, and one that has gone for good much later.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    retries = _QUICK_RETRIES + round(1000 * seconds / _BACKOFF)
    policy = DefaultPolicy(max_retries=retries, max_backoff=_BACKOFF)
    cast("ConnectSession", session).client.set_retry_policies([policy])


def _connect(settings: EngineSettings) -> SparkSession:
    url = settings.remote or ""
    log.info("connecting to Spark at %s", url.split(";", 1)[0])
    await_server(url, settings.connect_seconds)
    session = _open(url, url)
    _retry_for(session, settings.connect_seconds)
    return session


def _open(url: str, address: str) -> SparkSession:
    """Open a session on a Connect server.

    Args:
        url: Where it listens.
        address: The same with all that pyspark needs to be let in.
    """
    session = SparkSession.builder.remote(address).getOrCreate()
    session.conf.set("spark.sql.ansi.enabled", "true")
    code = session.conf.get(CODE_CONF, "")
    if code == code_digest():
        _with_code.add(_session_id(session))
    elif code:
        # Its sessions share Python workers, which have loaded that code.
        session.stop()
        raise ConfigError(
            "the Spark of `stagecoach ui` runs tasks with another version of Stagecoach's code "
            "than this process has; start the UI again"
        )
    else:
        ship_code(session)
    atexit.register(_release, session, url)
    return session


def _url(session: SparkSession, address: str) -> str:
    """Where the server of a Connect session listens."""
    used = _warm.get(_session_id(session))
    return address if used is None else used.url


def _release(session: SparkSession, url: str) -> None:
    """Do not leave a session of this process on the server until it times out."""
    if not is_alive(session):
        return
    if is_up(url):
        session.stop()
    else:
        _close(session)


def _session_id(session: SparkSession) -> str:
    return str(getattr(session, "session_id", ""))


def _connect_slots(session: SparkSession) -> int:
    told = session.conf.get(SLOTS_CONF, "") or ""
    if told.isdigit():
        return int(told)
    # Connect has no SparkContext, but divides a range by the same number.
    return session.range(1 << 12).select(sf.spark_partition_id()).distinct().count()
