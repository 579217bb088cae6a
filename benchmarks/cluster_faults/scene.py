"""Where a fault happens, and what a kind of fault is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from random import Random

from benchmarks.cluster_faults.processes import executors, send
from benchmarks.cluster_faults.testbed import CLASSIC, Testbed


@dataclass(frozen=True)
class Scene:
    """Where a fault happens.

    Args:
        bed: The cluster.
        dice: Say which worker, and for how long.
        mode: Of the driver.
        app: Its application.
    """

    bed: Testbed
    dice: Random
    mode: str
    app: str

    def worker(self) -> str:
        """One of the workers, which has an executor of the driver if any has."""
        names = self.bed.cluster.worker_names
        return self.dice.choice([name for name in names if self.executors(name)] or names)

    def pid(self, name: str) -> int:
        """Number of the master or a worker."""
        return self.bed.cluster.process(name).pid

    def executors(self, worker: str) -> list[int]:
        """Executors of the driver on a worker."""
        return executors(self.pid(worker), self.app)

    def seconds(self) -> float | None:
        """How long a fault lasts: for a while, or (None) until the run has ended."""
        return self.dice.choice((self.dice.uniform(1, 12), None))


Strike = Callable[[Scene], AbstractContextManager[object]]


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Args:
        name: For the table.
        strike: A context: the fault, until it is healed.
        mode: Of the driver that it happens to.
        prepared: A context around the whole trial.
        ends_driver: Whether no event follows from the driver.
        lasts: Whether the next run of the same driver may meet what the fault has left.
    """

    name: str
    strike: Strike
    mode: str = CLASSIC
    prepared: Strike = nullcontext
    ends_driver: bool = False
    lasts: bool = False


@contextmanager
def for_a_while(heal: Callable[[], object], seconds: float | None) -> Iterator[None]:
    """Heal after some seconds, or at the end of the block if that comes first."""
    ending = threading.Event()

    def wait() -> None:
        ending.wait(seconds)
        heal()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


@contextmanager
def frozen(pids: Sequence[int], seconds: float | None) -> Iterator[None]:
    """Stop processes for some seconds, or for the block if that ends first."""
    send(pids, signal.SIGSTOP)
    with for_a_while(lambda: send(pids, signal.SIGCONT), seconds):
        yield
