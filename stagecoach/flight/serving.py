"""The life of a server: it is put together, looks after itself, and ends in an orderly way.

start ─▶ serve ─▶ drain: no new statements, those that run and streams that are open go on
─▶ close: what is left is cancelled, results are released
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagecoach.flight.allocators import give_back_memory, keep_freed_memory
from stagecoach.flight.auth import Users
from stagecoach.flight.errors import ServeError
from stagecoach.flight.execution import Execution
from stagecoach.flight.holds import Holds
from stagecoach.flight.limits import Limits
from stagecoach.flight.metrics import ServeMetrics
from stagecoach.flight.results import Results
from stagecoach.flight.server import FlightSqlServer
from stagecoach.flight.service import Service
from stagecoach.flight.sessions import Sessions
from stagecoach.flight.streams import Streams
from stagecoach.flight.tickets import TicketSigner
from stagecoach.flight.tokens import TokenFile

if TYPE_CHECKING:
    from typing import Self

    from stagecoach.api.session import Session

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
CLOSE_SECONDS = 5.0
"""How long calls may take to end when the server is closed."""
_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """How a server is reached, and by whom.

    Args:
        host: Address that it listens on.
        port: Port; 0 for any that is free.
        tokens: Who may call; None for everybody.
        user_header: Header in which a proxy names the user; None for none.
        tls: Certificate and key as PEM; None for plain connections.
        ticket_key: Key of the tickets' signatures.
        locations: All servers that share the storage root and this key, as clients reach them.
        limits: Bounds.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tokens: TokenFile | None = None
    user_header: str | None = None
    tls: tuple[bytes, bytes] | None = None
    ticket_key: bytes
    locations: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)


class Serving:
    """A server that answers from when it is made until it is closed.

    Args:
        open_session: Opens a session over the catalog and the storage root.
        options: How it is reached.
        metrics: Counts what it does; nothing by default.

    Raises:
        StagecoachError: The catalog or the storage root cannot be used.
        ServeError: The address cannot be used.
    """

    def __init__(
        self,
        open_session: Callable[[], Session],
        options: ServeOptions,
        metrics: ServeMetrics | None = None,
    ) -> None:
        limits = options.limits
        keep_freed_memory()
        _check_address(options.host, options.port)
        self.metrics = metrics or ServeMetrics()
        sessions = Sessions(open_session)
        session = sessions.current()
        session.check_storage()
        self._session = session
        self._signer = TicketSigner(options.ticket_key)
        self._holds = Holds(session.store)
        self.streams = Streams(limits, self.metrics)
        self.execution = Execution(sessions, self._holds, limits, self.metrics)
        service = Service(
            sessions=sessions,
            execution=self.execution,
            results=Results(session.store, self._signer, self._holds, limits, options.locations),
            streams=self.streams,
            holds=self._holds,
            limits=limits,
        )
        host = f"[{options.host}]" if ":" in options.host else options.host
        self.server = FlightSqlServer(
            f"{host}:{options.port}",
            service,
            self._signer,
            Users(options.tokens, options.user_header),
            limits,
            options.tls,
        )
        self.uri = f"{'grpc+tls' if options.tls else 'grpc'}://{host}:{self.server.port}"
        self._is_draining = False
        self._is_over = threading.Event()
        gate = self.execution.gate
        self.metrics.watch("running", "Statements that run.", lambda: gate.num_running)
        self.metrics.watch("waiting", "Statements that wait.", lambda: gate.num_waiting)
        self.metrics.watch("streams", "Streams that are open.", lambda: self.streams.num_open)
        self.metrics.watch("held_results", "Results kept from gc.", lambda: len(self._holds))
        self._keeper = threading.Thread(target=self._look_after, name="serve-keeper", daemon=True)
        self._keeper.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def is_ready(self) -> bool:
        """Whether it takes new statements."""
        return not self._is_draining

    def drain(self, seconds: float) -> bool:
        """Take no more statements and wait for what goes on; return whether all of it has ended.

        Args:
            seconds: How long to wait.
        """
        self._is_draining = True
        self.execution.refuse()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.execution.num_open and not self.streams.num_open:
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def close(self) -> None:
        """Cancel what goes on, release all results, and stop."""
        self._is_draining = True
        self.execution.close()
        self.streams.close()
        self.server.shutdown(CLOSE_SECONDS)
        self._is_over.set()
        self._keeper.join()
        self._holds.close()

    def _look_after(self) -> None:
        was_busy = False
        while not self._is_over.wait(_LOOK_SECONDS):
            self._holds.sweep()
            if ended := self.streams.end_stalled():
                log.warning("ended %d streams whose clients read nothing", ended)
            was_busy = self._give_back(was_busy)

    def _give_back(self, was_busy: bool) -> bool:
        """Return memory that streams have freed to the system; return whether there are any."""
        is_busy = self.streams.num_open > 0
        if was_busy and not is_busy:
            give_back_memory()
        return is_busy


def _check_address(host: str, port: int) -> None:
    """Try to listen there: gRPC only says that a server did not start.

    Raises:
        ServeError: The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            raise ServeError(
                f"cannot listen on {host}, port {port}: {error.strerror or error}; "
                "choose another one with --host and --port"
            ) from error
