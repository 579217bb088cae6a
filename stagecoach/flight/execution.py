"""Runs statements: a bounded number at once, each through Dagster and Spark like any other query.

    execute ─▶ a thread: plan ─▶ committed already? ─▶ result
                                     │ no: wait for a slot
                                     ▼
                                 run of Dagster ─▶ head stage committed ─▶ result ─▶ end of the run

The thread of the call waits; it looks for a client that has gone and for the time limit, and then
cancels the run's Spark jobs.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from stagecoach.flight.errors import (
    BusyError,
    NotAllowedError,
    NotFoundError,
    StatementCancelledError,
    StatementTimeoutError,
)
from stagecoach.flight.gate import Gate
from stagecoach.flight.holds import Holds
from stagecoach.flight.limits import Limits
from stagecoach.flight.metrics import ServeMetrics
from stagecoach.flight.sessions import Sessions
from stagecoach.flight.statement import Statement
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import secrets
from stagecoach.planner.errors import CatalogError, SqlError

if TYPE_CHECKING:
    from stagecoach.api.parameters import ParameterInput
    from stagecoach.api.session import PlannedRun, Session

log = logging.getLogger("stagecoach.flight.statements")
"""One line for each statement."""

Params = Mapping[str, "ParameterInput"]

_POLL_SECONDS = 0.05
_CANCEL_AGAIN_SECONDS = 0.25
_KEPT = 256
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Execution:
    """The statements of a server.

    Args:
        sessions: What they are planned with.
        holds: Keeps their results safe from gc.
        limits: How many there may be.
        metrics: Counts them.
    """

    def __init__(
        self, sessions: Sessions, holds: Holds, limits: Limits, metrics: ServeMetrics
    ) -> None:
        self._sessions = sessions
        self._holds = holds
        self._limits = limits
        self._metrics = metrics
        self._gate = Gate(limits.running, limits.waiting)
        self._lock = threading.Lock()
        self._statements: OrderedDict[str, Statement] = OrderedDict()
        self._is_closed = False

    @property
    def gate(self) -> Gate:
        """The queue before Spark."""
        return self._gate

    def execute(
        self,
        user: str,
        sql: str,
        params: Params,
        *,
        is_gone: Callable[[], bool],
        statement_id: str | None = None,
    ) -> Statement:
        """Run a statement and return it when its result is committed.

        Args:
            user: Who sent it.
            sql: Its text.
            params: Values of its parameters.
            is_gone: Whether the client has gone.
            statement_id: An id that the client has chosen.

        Raises:
            BusyError: There are too many.
            StatementTimeoutError: It took too long.
            StatementCancelledError: It was cancelled, or the client has gone.
            StagecoachError: It failed.
        """
        try:
            statement = self._admit(Statement(user, sql, _checked_id(statement_id)))
        except BusyError:
            self._metrics.refused("statements")
            raise
        threading.Thread(
            target=self._work,
            args=(statement, params),
            name=f"statement-{statement.statement_id[:8]}",
            daemon=True,
        ).start()
        timeout = self._limits.timeout_seconds
        while not statement.settled.wait(_POLL_SECONDS):
            if is_gone():
                self._cancel(statement, StatementCancelledError("the client has gone"))
            elif timeout and time.monotonic() - statement.began > timeout:
                what = f"the statement took longer than the server's limit of {timeout:g} s"
                self._cancel(statement, StatementTimeoutError(f"{what} and was cancelled"))
        self._tell(statement)
        statement.check()
        return statement

    def find(self, user: str, statement_id: str) -> Statement:
        """Return a statement of a user.

        Raises:
            NotFoundError: The user has no such statement.
        """
        with self._lock:
            found = self._statements.get(statement_id)
        if found is None or found.user != user:
            raise NotFoundError(f"there is no statement {statement_id[:64]!r}")
        return found

    def of_user(self, user: str) -> list[Statement]:
        """Return the statements of a user, the oldest first."""
        with self._lock:
            return [s for s in self._statements.values() if s.user == user]

    def cancel(self, user: str, statement_id: str) -> bool:
        """Cancel a statement; return whether it was not settled yet.

        Raises:
            NotFoundError: The user has no such statement.
        """
        found = self.find(user, statement_id)
        return self._cancel(found, StatementCancelledError("the statement was cancelled"))

    def close(self) -> None:
        """Refuse further statements, and cancel those that run."""
        with self._lock:
            self._is_closed = True
            open_ones = [s for s in self._statements.values() if not s.ended.is_set()]
        for statement in open_ones:
            self._cancel(statement, StatementCancelledError("the server is shutting down"))

    def refuse(self) -> None:
        """Refuse further statements; those that run go on."""
        with self._lock:
            self._is_closed = True

    @property
    def num_open(self) -> int:
        """How many statements have not ended."""
        with self._lock:
            return sum(not s.ended.is_set() for s in self._statements.values())

    def _admit(self, statement: Statement) -> Statement:
        with self._lock:
            if self._is_closed:
                raise BusyError("the server is shutting down")
            most = self._limits.statements
            if sum(not s.ended.is_set() for s in self._statements.values()) >= most:
                raise BusyError(f"the server is busy with {most} statements; try again later")
            if statement.statement_id in self._statements:
                raise NotAllowedError(
                    f"there has been a statement {statement.statement_id!r}; choose another id"
                )
            self._statements[statement.statement_id] = statement
            over = [i for i, s in self._statements.items() if s.ended.is_set()]
            for statement_id in over[: max(0, len(self._statements) - _KEPT)]:
                del self._statements[statement_id]
        return statement

    def _work(self, statement: Statement, params: Params) -> None:
        """Plan and run a statement, in a thread of its own."""
        try:
            session, planned = self._plan(statement.sql, params)
            statement.planned(planned.graph)
            statement.check()
            # Now, so that a client does not wait for it when the result is there.
            threading.Thread(target=self._hold, args=(statement,), name="hold", daemon=True).start()
            self._run(statement, session, planned)
        except BaseException as error:  # noqa: BLE001 -- raised in the thread of the call
            statement.settle(error)
        finally:
            if statement.has_slot:
                self._gate.leave()
            if statement.error is not None:
                self._holds.release(statement.run_id)
            statement.ended.set()

    def _hold(self, statement: Statement) -> None:
        """Hold the result that the statement will have."""
        try:
            self._holds.keep(statement.run_id, time.time() + self._limits.ticket_seconds)
        except StorageError:
            # The call tries again, and tells it.
            log.debug("run %s could not be held yet", statement.run_id)
        if statement.error is not None:
            self._holds.release(statement.run_id)

    def _plan(self, sql: str, params: Params) -> tuple[Session, PlannedRun]:
        """Plan a text; where that fails, once more with the tables as they are at this moment."""
        session = self._sessions.current()
        try:
            return session, session.plan(sql, params)
        except (SqlError, CatalogError):
            newer = self._sessions.current(0.0)
            return newer, newer.plan(sql, params)

    def _run(self, statement: Statement, session: Session, planned: PlannedRun) -> None:
        from stagecoach.api.running import run_planned

        session.check_storage()
        statement.waits(False)
        statement.result = run_planned(
            planned,
            settings=session.settings,
            catalog=session.base_catalog,
            store=session.store,
            needs_spark=partial(self._enter, statement),
            listener=statement,
            run_id=statement.run_id,
        )

    def _enter(self, statement: Statement) -> None:
        """Wait for a slot. Where a result is made again later, there is one already."""
        statement.check()
        if statement.settled.is_set():
            return
        statement.waits(True)
        self._gate.enter(statement.check)
        statement.has_slot = True
        statement.waits(False)

    def _cancel(self, statement: Statement, error: Exception) -> bool:
        if not statement.settle(error, "cancelled"):
            return False
        if statement.graph is not None:
            threading.Thread(
                target=_cancel_run, args=(statement,), name="cancel", daemon=True
            ).start()
        return True

    def _tell(self, statement: Statement) -> None:
        """Write the line of a statement."""
        seconds = statement.seconds or 0.0
        self._metrics.statement(statement.state, seconds)
        error, head = statement.error, statement.head
        if error is not None:
            outcome = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        else:
            rows = (head.rows if head is not None else None) or 0
            stages = len(statement.stages())
            outcome = f"{rows} rows, {statement.count('reused')} of {stages} stages reused"
        log.info(
            "statement %s of %s: %s after %.3f s (%s; run %s): %s",
            statement.statement_id,
            statement.user,
            statement.state,
            seconds,
            secrets.redact(outcome),
            statement.run_id,
            secrets.redact(statement.shown_sql),
        )


def _cancel_run(statement: Statement) -> None:
    """Cancel the run's jobs until it has ended: it may be between two of them."""
    from stagecoach.assets.execution.cancellation import cancel_registry

    while not statement.ended.wait(_CANCEL_AGAIN_SECONDS):
        cancel_registry.cancel(statement.run_id)
    cancel_registry.forget(statement.run_id)


def _checked_id(statement_id: str | None) -> str | None:
    if statement_id is not None and not _ID.fullmatch(statement_id):
        raise NotAllowedError(
            "the header stagecoach-statement may have 1 to 64 letters, digits, '.', '_' and '-'"
        )
    return statement_id
