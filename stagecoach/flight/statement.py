"""One statement of a client, from its arrival to its result or error."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from stagecoach.flight.progress import Progress

if TYPE_CHECKING:
    from stagecoach.api.result import Result
    from stagecoach.assets.report.metadata import StageMetadata
    from stagecoach.planner.plan.stages import Stage, StageGraph

_SHOWN_SQL = 200


class Statement(Progress):
    """A statement that is planned, waits, runs, or has ended.

    It is *settled* as soon as the client can be answered: when the head stage has committed its
    output, or at an error. Its run may end a little later.

    Args:
        user: Who sent it.
        sql: Its text.
        statement_id: Its id, by which its user asks for its progress; a new one if not given.
    """

    def __init__(self, user: str, sql: str, statement_id: str | None = None) -> None:
        super().__init__()
        self.statement_id = statement_id or str(uuid.uuid4())
        self.run_id = str(uuid.uuid4())
        self.user = user
        self.sql = sql
        self.began = time.monotonic()
        self.seconds: float | None = None
        self.state = "planning"
        self.graph: StageGraph | None = None
        self.head: StageMetadata | None = None
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.settled = threading.Event()
        self.ended = threading.Event()
        self.has_slot = False
        self._settle_lock = threading.Lock()

    def planned(self, graph: StageGraph) -> None:
        """Note the plan."""
        self.graph = graph
        super().planned(graph)

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """Note the stage; with the head stage, the result is there."""
        super().stage_finished(stage, metadata)
        if self.graph is not None and stage.stage_id == self.graph.head.stage_id:
            self.settle(metadata)

    def settle(self, outcome: StageMetadata | BaseException, state: str = "failed") -> bool:
        """Say how it ended; return whether that was not known before.

        Args:
            outcome: What the head stage tells, or an error.
            state: What the statement is with that error.
        """
        with self._settle_lock:
            if self.settled.is_set():
                return False
            if isinstance(outcome, BaseException):
                self.error = outcome
                self.state = state
            else:
                self.head = outcome
                self.state = "finished"
            self.seconds = time.monotonic() - self.began
            self.settled.set()
        return True

    def waits(self, is_waiting: bool) -> None:
        """Say whether it waits for its turn, or else runs."""
        with self._settle_lock:
            if not self.settled.is_set():
                self.state = "waiting" if is_waiting else "running"

    def check(self) -> None:
        """Raise the error with which it was settled, if there is one."""
        if self.error is not None:
            raise self.error

    @property
    def shown_sql(self) -> str:
        """The beginning of the text, in one line."""
        text = " ".join(self.sql.split())
        return text if len(text) <= _SHOWN_SQL else f"{text[: _SHOWN_SQL - 1]}…"

    def to_dict(self) -> dict[str, Any]:
        """Return its progress as plain data."""
        seconds = self.seconds if self.seconds is not None else time.monotonic() - self.began
        return {
            "statement": self.statement_id,
            "run": self.run_id,
            "state": self.state,
            "seconds": round(seconds, 3),
            "sql": self.shown_sql,
            "error": None if self.error is None else str(self.error).partition("\n")[0],
            "stages": self.stages(),
        }
