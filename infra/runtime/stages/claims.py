"""Has one run compute a stage while others wait for its output.

Runs of a backfill start at the same moment and may come to the same stage together. The first puts
a claim beside the stage's output and renews it while it computes; the others wait and then reuse:

    no manifest ─▶ claim free? ─ yes ─▶ compute ─▶ manifest ─▶ claim removed
                      │ no
                      └─▶ wait: manifest there ─▶ reuse
                                claim gone, its process dead, or silent for `claim_seconds` ─▶ claim

A claim saves work and never decides about correctness: two holders compute the same output twice,
as they would without it, and the manifest alone commits. So a store that fails here, or on which
two holders believe that they are the first, does no harm. No clocks are compared: a waiter measures
with its own how long the content of the claim has stayed as it is.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from stagecoach.infra.errors import StageCanceledError
from stagecoach.infra.host.processes import is_running
from stagecoach.infra.spark.jobs import cancellable, job_tag
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.at_once import both
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.planner.errors import StagecoachError

if TYPE_CHECKING:
    from stagecoach.infra.runtime.stages.run import Run
    from stagecoach.infra.shuffle.manifest import Manifest
    from stagecoach.planner.plan.stages import Stage

log = logging.getLogger(__name__)

RENEWALS = 4
"""How often a claim is renewed in the time after which it counts as abandoned."""

_FIRST_POLL_SECONDS = 0.05
_MAX_POLL_SECONDS = 1.0


@contextmanager
def sole_computation(
    run: Run,
    stage: Stage,
    fingerprint: str,
    look: Callable[[], Manifest | None],
    *,
    among_steps: bool = False,
) -> Iterator[Manifest | None]:
    """Hold the claim on an output in the block, or yield the output where it is there.

    Args:
        run: The run.
        stage: Its stage.
        fingerprint: Identity of the output.
        look: Finds the output, or None where it is not committed.
        among_steps: Whether other steps of this very run may come to the stage, too.

    Yields:
        The output if it is committed; None if this run is to compute it.

    Raises:
        StageCanceledError: The stage was canceled while it waited.
    """
    seconds = run.settings.claim_seconds
    # No other run has the fingerprint of a stage that is bound to its run.
    bound_to_run = (run.fresh or not stage.deterministic) and not among_steps
    if not seconds or bound_to_run:
        yield None if run.own.is_absent(fingerprint) else look()
        return
    name = run.stage_name(stage.stage_id)
    claim = Claim(run.store, fingerprint, f"{name} of run {run.run_id}", seconds)
    found, _ = both(run.store, look, claim.look)
    if found is None:
        with cancellable(job_tag(run.run_id, stage.stage_id)) as canceled:
            found = _await_turn(run.store, claim, look, canceled, name)
    if found is not None:
        yield found
        return
    with claim.kept():
        yield None


def _await_turn(
    store: ObjectStore,
    claim: Claim,
    look: Callable[[], Manifest | None],
    canceled: threading.Event,
    name: str,
) -> Manifest | None:
    poll = _FIRST_POLL_SECONDS
    waited = False
    while True:
        # Whoever held the claim before may have committed just before it was removed.
        with ExitStack() as ended:
            ended.callback(claim.release)
            taken, found = both(store, claim.take, look)
            if found is None:
                ended.pop_all()
        if found is not None or taken:
            return found
        if not waited:
            log.info("%s: waits for %s, which computes the same", name, claim.other)
        waited = True
        if canceled.wait(poll):
            raise StageCanceledError(f"{name} was canceled")
        poll = min(2 * poll, _MAX_POLL_SECONDS)


class Claim:
    """The claim on one output, as one run sees it.

    Args:
        store: The storage root.
        fingerprint: Identity of the output.
        holder: Who we are, for people.
        stale_seconds: A claim that is not renewed for so long is abandoned.
        clock: Seconds that only ever grow.
    """

    def __init__(
        self,
        store: ObjectStore,
        fingerprint: str,
        holder: str,
        stale_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._key = layout.claim(fingerprint)
        self._holder = holder
        self._token = secrets.token_hex(8)
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._renewals = 0
        self._held_since: float | None = None  # when we last wrote it
        self._seen_free = False  # a moment ago
        self._seen = b""
        self._seen_at = 0.0
        self.other = "another run"
        """Who holds it, where `take` was refused."""

    def look(self) -> None:
        """Look whether the claim is free, so that the next `take` need not."""
        with suppress(StagecoachError):  # `take` says so
            self._seen_free = not self._store.exists(self._key)

    def take(self) -> bool:
        """Take the claim if it is free or abandoned; return whether there is nothing to wait for.

        That is so, too, where the store fails: waiting for a claim is never worth an error.
        """
        try:
            return self._take()
        except StagecoachError as error:
            log.warning("no claim on %s: %s", self._key, error)
            return True

    def _take(self) -> bool:
        now = self._clock()
        looked, self._seen_free = self._seen_free, False
        if self._store.put_if_absent(self._key, self._content(), looked=looked):
            self._held_since = now
            return True
        try:
            content = self._store.read_bytes(self._key)
        except ObjectMissingError:
            return False  # removed in between: the next call gets it
        if _values_of(content).get("token") == self._token:
            # Our own, written by a request that was sent twice because its first answer was lost.
            self._held_since = now
            return True
        if content != self._seen:
            self._seen, self._seen_at = content, self._clock()
            self.other = str(_values_of(content).get("holder", self.other))
        silent = self._clock() - self._seen_at
        if silent < self._stale_seconds and not _is_dead(_values_of(content)):
            return False
        log.info("the claim of %s is abandoned and taken over", self.other)
        self._write()
        return True

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the claim while the block runs, and remove it at the end."""
        done = threading.Event()
        thread = threading.Thread(target=self._keep, args=(done,), name="claim")
        thread.start()
        try:
            yield
        finally:
            done.set()
            if self._store.is_local:  # elsewhere nobody waits for the round trip
                thread.join()

    def release(self) -> None:
        """Remove the claim if it is still ours."""
        held, self._held_since = self._held_since, None
        if held is None:
            return
        try:
            # Nobody takes over what was written just now, which saves a request for a short stage.
            if self._clock() - held < self._stale_seconds / 2 or self._is_ours():
                self._store.delete([self._key])
        except StagecoachError as error:
            log.warning("the claim %s is not removed: %s", self._key, error)

    def _keep(self, done: threading.Event) -> None:
        self._renew(done)
        self.release()

    def _renew(self, done: threading.Event) -> None:
        while not done.wait(self._stale_seconds / RENEWALS):
            self._renewals += 1
            try:
                if not self._is_ours():
                    self._held_since = None  # taken over: we were silent for too long
                    return
                self._write()
            except StagecoachError as error:
                log.warning("the claim %s is not renewed: %s", self._key, error)

    def _write(self) -> None:
        now = self._clock()
        self._store.write_bytes(self._key, self._content())
        self._held_since = now

    def _is_ours(self) -> bool:
        try:
            return _values_of(self._store.read_bytes(self._key)).get("token") == self._token
        except ObjectMissingError:
            return False

    def _content(self) -> bytes:
        values = {
            "holder": self._holder,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "renewals": self._renewals,
            "token": self._token,
        }
        return json.dumps(values, sort_keys=True).encode()


def _is_dead(values: Mapping[str, Any]) -> bool:
    """Whether the holder was a process of this machine that is gone: no need to wait for it."""
    pid = values.get("pid")
    if values.get("host") != socket.gethostname() or not isinstance(pid, int):
        return False
    return not is_running(pid)


def _values_of(content: bytes) -> dict[str, Any]:
    try:
        values = json.loads(content)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
