"""Processes of the cluster that are killed, frozen or told to leave."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.cluster.sessions import members
from benchmarks.cluster.standalone import MASTER
from benchmarks.cluster_faults.processes import jvms, python_workers, send, with_python
from benchmarks.cluster_faults.scene import Kind, Scene, for_a_while, frozen
from benchmarks.cluster_faults.testbed import CONNECT

# ---------------------------------------------------------------- executors


@contextmanager
def _executor_killed(scene: Scene) -> Iterator[None]:
    send(scene.executors(scene.worker()), signal.SIGKILL)
    yield


@contextmanager
def _all_executors_killed(scene: Scene) -> Iterator[None]:
    for name in scene.bed.cluster.worker_names:
        send(scene.executors(name), signal.SIGKILL)
    yield


@contextmanager
def _python_killed(scene: Scene) -> Iterator[None]:
    send(python_workers(scene.pid(scene.worker())), signal.SIGKILL)
    yield


@contextmanager
def _executor_decommissioned(scene: Scene) -> Iterator[None]:
    send(scene.executors(scene.worker()), signal.SIGPWR)
    yield


def _executor_frozen(scene: Scene, seconds: float | None) -> AbstractContextManager[None]:
    pids = [pid for found in scene.executors(scene.worker()) for pid in with_python(found)]
    return frozen(pids, seconds)


def _executor_frozen_briefly(scene: Scene) -> AbstractContextManager[None]:
    return _executor_frozen(scene, scene.dice.uniform(1, 12))


def _executor_frozen_for_good(scene: Scene) -> AbstractContextManager[None]:
    return _executor_frozen(scene, None)


# ---------------------------------------------------------------- workers


@contextmanager
def _worker_killed(scene: Scene) -> Iterator[None]:
    cluster, name = scene.bed.cluster, scene.worker()
    cluster.kill(name)
    with for_a_while(lambda: cluster.launch(name), scene.seconds()):
        yield


@contextmanager
def _worker_daemon_killed(scene: Scene) -> Iterator[None]:
    """Only the daemon: its executors notice that it has gone, and end."""
    cluster, name = scene.bed.cluster, scene.worker()
    send([scene.pid(name)], signal.SIGKILL)
    yield
    cluster.kill(name)
    cluster.launch(name)


def _worker_frozen(scene: Scene) -> AbstractContextManager[None]:
    """A machine that hangs."""
    return frozen(members([scene.pid(scene.worker())]), scene.seconds())


@contextmanager
def _worker_decommissioned(scene: Scene) -> Iterator[None]:
    """A machine that is told to leave, as before a spot machine is taken away."""
    cluster, name = scene.bed.cluster, scene.worker()
    send([scene.pid(name)], signal.SIGPWR)
    with for_a_while(lambda: cluster.kill(name), scene.dice.uniform(2, 10)):
        yield
    cluster.launch(name)


# ---------------------------------------------------------------- master, drivers, servers


@contextmanager
def _master_restarted(scene: Scene) -> Iterator[None]:
    """It knows its applications from its recovery folder."""
    cluster = scene.bed.cluster
    cluster.kill(MASTER)
    time.sleep(scene.dice.uniform(0, 4))
    cluster.launch(MASTER)
    yield


@contextmanager
def _master_forgets(scene: Scene) -> Iterator[None]:
    """It knows no application any more, as by default (without a recovery folder)."""
    cluster = scene.bed.cluster
    cluster.kill(MASTER)
    shutil.rmtree(scene.bed.recovery, ignore_errors=True)
    scene.bed.recovery.mkdir()
    time.sleep(scene.dice.uniform(0, 4))
    cluster.launch(MASTER)
    yield
    # The Connect server's application is forgotten, too, and does not notice. A run behind it fails
    # and says so; then its user restarts the server.
    scene.bed.connect.kill()
    scene.bed.connect.start()


def _master_frozen(scene: Scene) -> AbstractContextManager[None]:
    return frozen([scene.pid(MASTER)], scene.seconds())


@contextmanager
def _driver_killed(scene: Scene) -> Iterator[None]:
    scene.bed.end_driver(scene.mode)
    yield


@contextmanager
def _driver_jvm_killed(scene: Scene) -> Iterator[None]:
    """Only the JVM, as the kernel does when memory is short; the process runs on without it."""
    send(jvms(scene.bed.driver(scene.mode).pid), signal.SIGKILL)
    yield


@contextmanager
def _connect_killed(scene: Scene) -> Iterator[None]:
    scene.bed.connect.kill()
    with for_a_while(scene.bed.connect.start, scene.dice.uniform(0, 5)):
        yield


def _connect_frozen(scene: Scene) -> AbstractContextManager[None]:
    return frozen(members([scene.bed.connect.pid]), scene.dice.uniform(1, 12))


PROCESS_KINDS = (
    Kind("executor killed", _executor_killed),
    Kind("all executors killed", _all_executors_killed),
    Kind("Python workers killed", _python_killed),
    Kind("executor frozen for a while", _executor_frozen_briefly),
    Kind("executor frozen for good", _executor_frozen_for_good),
    Kind("executor decommissioned", _executor_decommissioned),
    Kind("worker killed", _worker_killed),
    Kind("worker's daemon killed", _worker_daemon_killed),
    Kind("worker frozen", _worker_frozen),
    Kind("worker decommissioned", _worker_decommissioned),
    Kind("master restarted", _master_restarted, lasts=True),
    Kind("master restarted, forgets", _master_forgets, lasts=True),
    Kind("master frozen", _master_frozen),
    Kind("driver killed", _driver_killed, ends_driver=True),
    Kind("driver's JVM killed", _driver_jvm_killed, lasts=True),
    Kind("Connect server killed", _connect_killed, mode=CONNECT),
    Kind("Connect server frozen", _connect_frozen, mode=CONNECT),
    Kind("executor killed (Connect)", _executor_killed, mode=CONNECT),
    Kind("driver killed (Connect)", _driver_killed, mode=CONNECT, ends_driver=True),
    Kind("master restarted, forgets (Connect)", _master_forgets, mode=CONNECT, lasts=True),
)
