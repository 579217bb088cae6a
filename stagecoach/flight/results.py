"""Results as clients get them: a `FlightInfo` whose endpoints are files of the head stage's output.

The rows of a result are those of its map files, one after the other. So a range of files is a part
of the result, and endpoints in the order of their files have the result's order.
"""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as fl

from stagecoach.api.head_output import HeadOutput
from stagecoach.flight.errors import NotFoundError
from stagecoach.flight.holds import Holds
from stagecoach.flight.limits import Limits
from stagecoach.flight.messages.flight_data import Rows
from stagecoach.flight.messages.wire import message, pack
from stagecoach.flight.statement import Statement
from stagecoach.flight.tickets import ResultTicket, TextTicket, Ticket, TicketSigner
from stagecoach.infra.runtime.records.pointers import read_pointer
from stagecoach.planner.types import Field, arrow_schema

if TYPE_CHECKING:
    from stagecoach.api.parameters import ParameterValue
    from stagecoach.infra.shuffle.manifest import Manifest
    from stagecoach.infra.storage.object_store import ObjectStore

_KEPT = 256


@dataclass(frozen=True)
class _Given:
    """A result that was handed out.

    Args:
        statement: Its statement.
        columns: Its columns.
        manifest: The commit.
    """

    statement: Statement
    columns: tuple[Field, ...]
    manifest: Manifest


class Results:
    """Hands out results and reads them back.

    Args:
        store: The storage root.
        signer: Signs tickets.
        holds: Keeps results safe from gc.
        limits: Of tickets and endpoints.
        locations: Where endpoints can be read, if not at the server that was asked: all servers
            that share the storage root and the key of tickets.
    """

    def __init__(
        self,
        store: ObjectStore,
        signer: TicketSigner,
        holds: Holds,
        limits: Limits,
        locations: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._signer = signer
        self._holds = holds
        self._limits = limits
        self._locations = tuple(locations)
        self._lock = threading.Lock()
        self._given: OrderedDict[str, _Given] = OrderedDict()
        self._cancelled: OrderedDict[str, None] = OrderedDict()

    def info(self, statement: Statement, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
        """Return what a client needs to read the result of a statement.

        Raises:
            StorageError: The result is gone already.
        """
        graph, head = statement.graph, statement.head
        assert graph is not None
        assert head is not None
        expires = time.time() + self._limits.ticket_seconds
        self._holds.keep(statement.run_id, expires)
        stage_id = graph.head.stage_id
        columns = self._columns(statement.run_id, stage_id)
        output = HeadOutput(
            store=self._store,
            run_id=statement.run_id,
            stage=f"{graph.query}/stage_{stage_id}",
            fingerprint=head.fingerprint or "",
        )
        manifest = output.manifest()
        with self._lock:
            self._given[statement.statement_id] = _Given(statement, columns, manifest)
            while len(self._given) > _KEPT:
                self._given.popitem(last=False)
        ranges = file_ranges(
            [file.num_bytes for file in manifest.files],
            self._limits.endpoint_bytes,
            self._limits.endpoints,
        )
        tickets = [
            ResultTicket(
                user=statement.user,
                statement=statement.statement_id,
                run_id=statement.run_id,
                query=graph.query,
                stage_id=stage_id,
                fingerprint=manifest.fingerprint,
                content=manifest.content_hash,
                first=part.start,
                end=part.stop,
                expires=expires,
            )
            for part in ranges
        ]
        told = {"statement": statement.statement_id, "run": statement.run_id}
        return fl.FlightInfo(
            arrow_schema(columns),
            descriptor,
            [self.endpoint(ticket, number) for number, ticket in enumerate(tickets)],
            manifest.num_rows,
            -1,
            # Of a query that the planner does not understand, nobody knows whether it has an order.
            graph.ordered or graph.fallback_reason is not None,
            json.dumps(told),
        )

    def new_text(self, user: str, sql: str, values: Mapping[str, ParameterValue]) -> TextTicket:
        """Return a ticket for the answer to an EXPLAIN statement."""
        return TextTicket(
            user=user,
            sql=sql,
            expires=time.time() + self._limits.ticket_seconds,
            values={name: [str(value.dtype), value.text] for name, value in values.items()},
        )

    def endpoint(self, ticket: Ticket, number: int = 0) -> fl.FlightEndpoint:
        """Return where and with what a ticket can be used.

        Args:
            ticket: The ticket.
            number: Of the endpoint; each has another server first.
        """
        packed = pack(message("TicketStatementQuery", statement_handle=self._signer.sign(ticket)))
        first = number % len(self._locations) if self._locations else 0
        locations = [*self._locations[first:], *self._locations[:first]]
        moment = datetime.datetime.fromtimestamp(ticket.expires, tz=datetime.UTC)
        return fl.FlightEndpoint(packed, locations, pa.scalar(moment, pa.timestamp("us", "UTC")))

    def schema(self, ticket: ResultTicket) -> pa.Schema:
        """Return the columns of a result.

        Raises:
            NotFoundError: The result is gone.
        """
        given = self._given_for(ticket)
        columns = self._columns(ticket.run_id, ticket.stage_id) if given is None else given.columns
        return arrow_schema(columns)

    def batches(self, ticket: ResultTicket) -> Iterator[Rows]:
        """Return the rows that a ticket is for; the result must be held meanwhile.

        They are as they are stored where that is possible.

        Raises:
            NotFoundError: The result is gone, or was cancelled.
        """
        with self._lock:
            if ticket.statement in self._cancelled:
                raise NotFoundError("the result was cancelled; run the statement again")
        given = self._given_for(ticket)
        output = HeadOutput(
            store=self._store,
            run_id=ticket.run_id,
            stage=f"{ticket.query}/stage_{ticket.stage_id}",
            fingerprint=ticket.fingerprint,
            run_again=None if given is None else lambda: _run_again(given.statement),
            # Held since it was handed out, so gc has not touched it.
            known=None if given is None else given.manifest,
        )
        columns = self._columns(ticket.run_id, ticket.stage_id) if given is None else given.columns
        files = range(ticket.first, ticket.end)
        return output.stored_batches(
            columns,
            files=files,
            content=ticket.content,
            memory_bytes=self._limits.read_bytes,
        )

    def cancel(self, ticket: ResultTicket) -> None:
        """Let nobody read the result any more, and release it."""
        with self._lock:
            self._given.pop(ticket.statement, None)
            self._cancelled[ticket.statement] = None
            while len(self._cancelled) > 10 * _KEPT:
                self._cancelled.popitem(last=False)
        self._holds.release(ticket.run_id)

    def renew(self, ticket: Ticket) -> Ticket:
        """Return the ticket with a later expiration; its result is held until then."""
        renewed = replace(ticket, expires=time.time() + self._limits.ticket_seconds)
        if isinstance(renewed, ResultTicket):
            self._holds.keep(renewed.run_id, renewed.expires)
        return renewed

    def _given_for(self, ticket: ResultTicket) -> _Given | None:
        """What was handed out with the ticket; None if another server did, or long ago."""
        with self._lock:
            found = self._given.get(ticket.statement)
        if found is None:
            return None
        # A key that several servers share could sign anything.
        named = ticket.run_id, ticket.fingerprint, ticket.content
        manifest = found.manifest
        held = found.statement.run_id, manifest.fingerprint, manifest.content_hash
        return found if named == held else None

    def _columns(self, run_id: str, stage_id: int) -> tuple[Field, ...]:
        pointer = read_pointer(self._store, run_id, stage_id)
        if pointer is None:
            raise NotFoundError("the result is gone from storage; run the statement again")
        return pointer.fields


def _run_again(statement: Statement) -> str:
    """Run the head stage again, in the run of the statement, which must have ended."""
    statement.ended.wait()
    result = statement.result
    if result is None or result.run_again is None:
        raise NotFoundError("the result is lost; run the statement again")
    return result.run_again()


def file_ranges(sizes: Sequence[int], part_bytes: int, most: int) -> list[range]:
    """Return consecutive ranges of files, one for so many bytes, of about equal size.

    Args:
        sizes: Bytes of each file.
        part_bytes: Bytes of a range.
        most: Most ranges.
    """
    if not sizes:
        return [range(0)]
    total = sum(sizes)
    number = max(1, min(most, len(sizes), total // part_bytes))
    found: list[range] = []
    first = 0
    for position, end in enumerate(accumulate(sizes), 1):
        left = number - len(found) - 1
        is_full = end * number >= total * (len(found) + 1)
        if left and (is_full or len(sizes) - position == left):
            found.append(range(first, position))
            first = position
    found.append(range(first, len(sizes)))
    return found
